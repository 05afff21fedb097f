/* Preloaded into the worker: records new names and syncs in the order of the calls, one line each, in the file $RECORD_SYNCS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void record(const char *call, const char *path) {
    char line[PATH_MAX + 16];
    const char *log = getenv("RECORD_SYNCS");
    int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    int file = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0) {
        if (write(file, line, length) != length)
            abort();
        close(file);
    }
}

static void record_sync(int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        record("sync", path);
    }
}

int rename(const char *from, const char *to) {
    int (*call)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    int result = call(from, to);
    if (result == 0)
        record("name", to);
    return result;
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    int (*call)(int, const char *, int, const char *, int) = dlsym(RTLD_NEXT, "linkat");
    int result = call(from_folder, from, to_folder, to, flags);
    if (result == 0)
        record("name", to);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    int (*call)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    int result = call(path, mode);
    if (result == 0)
        record("name", path);
    return result;
}

int fsync(int file) {
    int (*call)(int) = dlsym(RTLD_NEXT, "fsync");
    int result = call(file);
    if (result == 0)
        record_sync(file);
    return result;
}

int fdatasync(int file) {
    int (*call)(int) = dlsym(RTLD_NEXT, "fdatasync");
    int result = call(file);
    if (result == 0)
        record_sync(file);
    return result;
}
