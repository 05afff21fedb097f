// Renders variants with sharp. Reads the job as JSON from the first argument and prints the figures as JSON.
// "clones": both variants are clones of one pipeline, each of which decodes with shrink-on-load.
// "chained": one decode with shrink-on-load gives the raw pixels of `large`; both variants are made from these.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

const job = JSON.parse(process.argv[2]);
const sharp = createRequire(join(job.home, 'package.json'))('sharp');
sharp.cache(false);
sharp.concurrency(job.concurrency);

const size = ({ fit, size }) => ({ width: size, height: size, fit, withoutEnlargement: true });
const webp = ({ quality, effort, sharp_yuv }) => ({ quality, effort, smartSubsample: sharp_yuv });

const forms = {
  clones(file) {
    const upright = sharp(file).rotate();
    const variant = (spec) => upright.clone().resize(size(spec)).webp(webp(spec)).toBuffer();
    return Promise.all([variant(job.large), variant(job.medium)]);
  },
  async chained(file) {
    const { data, info } = await sharp(file).rotate().resize(size(job.large)).raw().toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    const raw = () => sharp(data, { raw: { width, height, channels } });
    return Promise.all([
      raw().webp(webp(job.large)).toBuffer(),
      raw().resize(size(job.medium)).webp(webp(job.medium)).toBuffer(),
    ]);
  },
};

const figures = { photos: 0, failed: [], bytes_large: 0, bytes_medium: 0 };
let next = 0;

async function worker() {
  while (next < job.photos.length) {
    const photo = job.photos[next++];
    try {
      const [large, medium] = await forms[job.form](await readFile(photo));
      if (job.out) {
        await writeFile(join(job.out, `${basename(photo)}.large.webp`), large);
        await writeFile(join(job.out, `${basename(photo)}.medium.webp`), medium);
      }
      figures.photos += 1;
      figures.bytes_large += large.length;
      figures.bytes_medium += medium.length;
    } catch (error) {
      console.error(`${photo}: ${error.message}`);
      figures.failed.push(photo);
    }
  }
}

const started = process.hrtime.bigint();
const before = process.cpuUsage();
await Promise.all(Array.from({ length: job.in_flight }, worker));
figures.wall = Number(process.hrtime.bigint() - started) / 1e9;
const { user, system } = process.cpuUsage(before);
figures.cpu = (user + system) / 1e6;
figures.rss = 1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
const { sharp: version, vips, mozjpeg, webp: libwebp } = sharp.versions;
figures.version = `sharp ${version} (libvips ${vips}, mozjpeg ${mozjpeg}, libwebp ${libwebp}, node ${process.versions.node})`;
console.log(JSON.stringify(figures));
