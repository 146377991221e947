/** The folder for the files that Posthorn creates, and the messages for folders that can't be used. */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { dataDir, explainFileError, root } from './folder.ts';

const dir = mkdtempSync(join(tmpdir(), 'posthorn-folder-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const uid = process.getuid?.();

function words(code: string, path: string, below = dir): string | undefined {
  return explainFileError(Object.assign(new Error(code), { code, path }), below)?.message;
}

it('is that of the checkout where POSTHORN_DIR is blank', () => {
  const script = `import { dataDir } from '${join(root, 'scripts/folder.ts')}'; process.stdout.write(dataDir);`;
  for (const POSTHORN_DIR of ['', ' '])
    expect(execFileSync(process.execPath, ['-e', script], { env: { POSTHORN_DIR }, encoding: 'utf8' })).toBe(
      join(root, '.posthorn'),
    );
});

describe('the message about an unusable folder', () => {
  it('explains a read-only file system', () => {
    expect(words('EROFS', join(dataDir, 'logs'), dataDir)).toBe(
      `Can't write to ${dataDir}/logs: its file system is read-only. Use a checkout that you can write to.\n` +
        'Or set POSTHORN_DIR to a folder that you can write to.',
    );
    // POSTHORN_DIR does not move what is built into the checkout.
    expect(words('EROFS', join(root, 'apps/x'))).not.toContain('POSTHORN_DIR');
  });
  it('names the other user that owns the folder, and the command that changes it', () => {
    // The file system's root belongs to root; as root, the test gives its folder to another user.
    const path = uid === 0 ? join(dir, 'x') : '/x';
    if (uid === 0) chownSync(dir, 12_345, 12_345);
    expect(words('EACCES', path)).toBe(
      `Can't write to ${path}: it belongs to ${uid === 0 ? 'user 12345' : 'root'}, and you are ${uid === 0 ? 'root' : `user ${uid}`}.\n` +
        `Run: sudo ${uid === 0 ? `chown -R 0 ${dir}` : `install -d -o ${uid} /x`}`,
    );
  });
  it('names the folder that a user may not enter, also a user without a name', () => {
    // Only root can become another user.
    if (uid !== 0) return;
    const closed = join(dir, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    chownSync(dir, 12_345, 12_345);
    process.seteuid?.(12_345);
    try {
      expect(words('EACCES', join(closed, 'x/y'))).toBe(
        `Can't write to ${closed}/x/y: user 12345 may not enter ${closed}. Change its permissions.`,
      );
    } finally {
      process.seteuid?.(0);
    }
  });
  it('never advises to take a folder of the system', () => {
    if (uid === 0) chownSync(dir, 12_345, 12_345);
    const missing = `${uid === 0 ? dir : ''}/it's missing/posthorn`;
    const word = missing.replace("it's missing", "it'\\''s missing");
    expect(words('EACCES', missing, missing)).toContain(`Run: sudo install -d -o ${uid} '${word}'`);
  });
  it('explains missing permissions and missing space', () => {
    if (uid === 0) chownSync(dir, 0, 0);
    expect(words('EACCES', dir)).toContain(`Run: chmod -R u+rwX ${dir}`);
    expect(words('ENOSPC', dir)).toContain('no space is left');
  });
  it('is not made from any other error', () => {
    expect(words('EIO', dir)).toBeUndefined();
    expect(explainFileError(new Error('something else'))).toBeUndefined();
  });
});
