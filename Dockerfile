# One image for ingest, worker, console and the command line: docs/image.md says how to build it for amd64 and arm64.
# The first stage runs on the machine that builds, whatever the image is for: nothing that it makes depends on the
# architecture.
ARG NODE_IMAGE=node:24-slim
ARG BASE_IMAGE=gcr.io/distroless/cc-debian13:nonroot

FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /app
COPY . .
RUN npm ci && npm run build && node scripts/image/main.ts /image

FROM ${NODE_IMAGE} AS node

# Libraries of C and C++, certificates, time zones: no shell, no package manager, no npm. Nothing runs here, so no
# emulator is needed.
FROM ${BASE_IMAGE}
ARG VERSION=0.3.0-dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Posthorn" \
  org.opencontainers.image.description="Signed webhook delivery on Redis: ingest, worker, console, command line." \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
WORKDIR /app
# What is in it: sbom.cdx.json.
COPY --from=build /image ./
ENV NODE_ENV=production PATH=/usr/local/bin:/usr/bin:/bin
# By default glibc keeps what Node's compiler frees, separately for each thread. What it asks for in larger pieces is
# given back at once.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=16384
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
# Without a shell. On Docker and podman; Kubernetes has its own probes.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPERATIONS_PORT || process.env.PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node itself is process 1, so it gets the signals. The command names the app.
CMD ["node", "apps/ingest/dist/main.cjs"]
