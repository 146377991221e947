/** The programs that Posthorn needs and that npm does not provide. */

export interface Program {
  /** The command; also the name of the folder that it is unpacked into. */
  name: string;
  /** The name in messages. */
  title: string;
  /** Commands that are accepted, best first. */
  commands: string[];
  /** Debian packages that contain it, best first, each with the path of its executable. */
  apt: { package: string; executable: string }[];
  /** The package names for installing it by hand; `apt` where it is not the first of those above. */
  install: { apt?: string; dnf: string; brew: string };
  /** An alternative to installing it. */
  instead?: string;
  /** Returns what is wrong with a version, given the output of `--version`. */
  refuse?: (version: string) => string | undefined;
}

export const redisServer: Program = {
  name: 'redis-server',
  title: 'Redis',
  commands: ['redis-server', 'valkey-server'],
  apt: [
    { package: 'redis-server', executable: 'usr/bin/redis-server' },
    { package: 'valkey-server', executable: 'usr/bin/valkey-server' },
  ],
  install: { dnf: 'valkey', brew: 'redis' },
  instead: 'export REDIS_URL=redis://host:6379, if Redis 7 or Valkey already runs there',
  refuse(version) {
    const found = /\bv=(\d+)(\S*)/.exec(version);
    if (found?.[1] === undefined || Number(found[1]) >= 7) return undefined;
    return `it is version ${found[1]}${found[2]}, and Posthorn needs 7 or later`;
  },
};

export const redisCli: Program = {
  name: 'redis-cli',
  title: 'redis-cli',
  commands: ['redis-cli', 'valkey-cli'],
  apt: [
    { package: 'redis-tools', executable: 'usr/bin/redis-cli' },
    { package: 'valkey-tools', executable: 'usr/bin/valkey-cli' },
  ],
  install: { dnf: 'valkey', brew: 'redis' },
};

export const openssl: Program = {
  name: 'openssl',
  title: 'OpenSSL',
  commands: ['openssl'],
  apt: [{ package: 'openssl', executable: 'usr/bin/openssl' }],
  install: { dnf: 'openssl', brew: 'openssl' },
};

export const chromium: Program = {
  name: 'chromium',
  title: 'chromium',
  // Without a window it is the same browser, at half the CPU.
  commands: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
  // The executables themselves: the commands of these names are scripts that work in one place only.
  apt: [
    { package: 'chromium-headless-shell', executable: 'usr/lib/chromium/chromium-headless-shell' },
    { package: 'chromium', executable: 'usr/lib/chromium/chromium' },
  ],
  // Ubuntu has no package of the headless build.
  install: { apt: 'chromium', dnf: 'chromium', brew: '--cask chromium' },
};

export const curl: Program = {
  name: 'curl',
  title: 'curl',
  commands: ['curl'],
  apt: [{ package: 'curl', executable: 'usr/bin/curl' }],
  install: { dnf: 'curl', brew: 'curl' },
};

export const promtool: Program = {
  name: 'promtool',
  title: 'promtool',
  commands: ['promtool'],
  apt: [{ package: 'prometheus', executable: 'usr/bin/promtool' }],
  install: { dnf: 'golang-github-prometheus', brew: 'prometheus' },
};

export const python: Program = {
  name: 'python3',
  title: 'Python',
  commands: ['python3'],
  apt: [{ package: 'python3', executable: 'usr/bin/python3' }],
  install: { dnf: 'python3', brew: 'python' },
};
