# AWS emulator for docker/compose.yaml: the same package and version as in the tests.
FROM python:3.13-slim-bookworm

RUN pip install --no-cache-dir ministack==1.5.33

USER 65532:65532
WORKDIR /tmp
# Listens on all addresses of the container; the compose file publishes the port on 127.0.0.1 only.
ENV BIND_HOST=0.0.0.0 GATEWAY_PORT=4566 LOG_LEVEL=WARNING SERVICES=s3,sqs,sns,dynamodb,ssm,events,sts,iam
EXPOSE 4566
HEALTHCHECK --interval=2s --timeout=3s --retries=15 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:4566/_ministack/health', timeout=2)"]
CMD ["ministack"]
