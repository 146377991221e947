/** Proxies of the environment: `HTTP_PROXY`, which Node uses if `NODE_USE_ENV_PROXY` is 1. */

/** Excepts this machine from the proxy, for this process and those that it starts: a proxy elsewhere can't reach it. */
export function useNoProxyForLoopback(env: NodeJS.ProcessEnv): void {
  // The lower-case name wins where both are set.
  const others = env.no_proxy ?? env.NO_PROXY;
  env.no_proxy = `${others ? `${others},` : ''}localhost,127.0.0.1,[::1]`;
}
