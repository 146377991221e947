# One image for ingest, worker and console; the command in docker-compose.yml selects the app.
# The first stage builds the console's page. It needs development packages, which the final image does not contain.
FROM node:24-slim AS page
WORKDIR /app
COPY . .
RUN npm ci && npm run build

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
COPY apps/ingest/package.json apps/ingest/
COPY apps/worker/package.json apps/worker/
COPY apps/cli/package.json apps/cli/
COPY apps/console/package.json apps/console/
COPY packages/core/package.json packages/core/
COPY packages/store/package.json packages/store/
COPY packages/queue/package.json packages/queue/
COPY packages/dispatch/package.json packages/dispatch/
COPY packages/sender/package.json packages/sender/
COPY packages/signing/package.json packages/signing/
COPY packages/runtime/package.json packages/runtime/
COPY packages/http/package.json packages/http/
COPY packages/operator-api/package.json packages/operator-api/
COPY packages/client/package.json packages/client/
COPY packages/receiver/package.json packages/receiver/
COPY packages/testing/package.json packages/testing/
# In one layer, so that the image does not contain what is removed: npm's cache, and a compiler that `valibot` could use but does not need.
RUN npm ci --omit=dev && rm -rf /root/.npm node_modules/typescript node_modules/@typescript
COPY apps apps
COPY packages packages
COPY --from=page /app/apps/console/page/dist apps/console/page/dist
USER node
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPERATIONS_PORT || process.env.PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node itself is process 1, so it gets the signals.
CMD ["node", "apps/ingest/src/main.ts"]
