/** The programs that Posthorn needs and npm does not bring. */

export interface Program {
  /** Its command, under which it is also unpacked. */
  name: string;
  /** What people call it. */
  title: string;
  /** The commands that will do, best first. */
  commands: string[];
  /** Debian's packages of it, best first, each with the path of its executable. */
  apt: { package: string; executable: string }[];
  /** What installs it by hand: one command for each kind of machine. */
  install: { dnf: string; brew: string };
  /** What to do instead of installing it. */
  instead?: string;
  /** Says what is wrong with a version, given what `--version` prints. */
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
  instead: 'export REDIS_URL=redis://host:6379, where Redis 7 or Valkey runs already',
  refuse(version) {
    const found = /\bv=(\d+)(\S*)/.exec(version);
    if (found?.[1] === undefined || Number(found[1]) >= 7) return undefined;
    return `it is version ${found[1]}${found[2]}, and Posthorn needs 7 or later`;
  },
};

export const chromium: Program = {
  name: 'chromium',
  title: 'chromium',
  commands: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
  // The executable itself: the command of that name is a script that knows one place only.
  apt: [{ package: 'chromium', executable: 'usr/lib/chromium/chromium' }],
  install: { dnf: 'chromium', brew: '--cask chromium' },
};

export const curl: Program = {
  name: 'curl',
  title: 'curl',
  commands: ['curl'],
  apt: [{ package: 'curl', executable: 'usr/bin/curl' }],
  install: { dnf: 'curl', brew: 'curl' },
};
