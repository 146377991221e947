/** Which errors mean that Redis is unavailable. */
import { describe, expect, it } from '@jest/globals';
import { ReplyError } from 'ioredis';
import { typedError } from './storage-errors.ts';

describe('storage failures', () => {
  it.each([
    new ReplyError('OOM command not allowed'),
    new ReplyError("READONLY You can't write against a read only replica."),
    new ReplyError('LOADING Redis is loading'),
    new ReplyError('UNBLOCKED force unblock from blocking operation'),
    new ReplyError('EXECABORT Transaction discarded because of previous errors.'),
    new ReplyError('ERR max number of clients reached'),
    new ReplyError("ERR The user executing the script can't run this command or subcommand script"),
    new ReplyError("ERR ACL failure in script: User posthorn has no permissions to run the 'zadd' command"),
    new Error('Connection is closed.'),
    new Error('Command timed out'),
    Object.assign(new Error('Command aborted due to connection close'), { name: 'AbortError' }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    Object.assign(new Error('connect ENETUNREACH 10.0.0.1:6379'), { code: 'ENETUNREACH' }),
    Object.assign(new Error('connect EMFILE 10.0.0.1:6379'), { code: 'EMFILE' }),
    Object.assign(new Error('connect EADDRNOTAVAIL 10.0.0.1:6379'), { code: 'EADDRNOTAVAIL' }),
  ])('%s means that storage is away', (error) => {
    expect(typedError(error)).toMatchObject({ name: 'StorageUnavailable', message: error.message, cause: error });
  });
  it.each([
    ["READONLY You can't write against a read only replica.", true],
    ["OOM command not allowed when used memory > 'maxmemory'. script: 7c2f00d1, on @user_script:1.", true],
    ['CLUSTERDOWN The cluster is down', true],
    // In the middle of a script, which may have written before.
    ["ERR The user executing the script can't run this command or subcommand script", false],
  ])('knows whether nothing was changed: %s', (message, isRefusal) => {
    expect(typedError(new ReplyError(message))).toMatchObject({ isRefusal });
    // It may have been applied when it was sent the first time, and its reply was lost.
    expect(typedError(new ReplyError(message), true)).toMatchObject({ isRefusal: false });
    expect(typedError(new Error('Command timed out'))).toMatchObject({ isRefusal: false });
  });
  it.each([
    ' script: 7c2f00d1, on @user_script:53.',
    // Valkey 9.
    ' script: on @user_script:53.',
  ])('says what a command in a script failed with, not where the script is:%s', (place) => {
    const message = "OOM command not allowed when used memory > 'maxmemory'.";
    const error = new ReplyError(message + place);
    expect(typedError(error)).toMatchObject({ name: 'StorageUnavailable', message, cause: error });
  });
  it('says why the client gave up, not after how many tries', () => {
    const error = new Error('Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN The cluster is down');
    expect(typedError(error)).toMatchObject({ name: 'StorageUnavailable', message: 'CLUSTERDOWN The cluster is down' });
  });
  it('says what broke, not which option of the client limits the tries', () => {
    const text =
      'Reached the max retries per request limit (which is 1). Refer to "maxRetriesPerRequest" option for details.';
    const error = Object.assign(new Error(text), { name: 'MaxRetriesPerRequestError' });
    const message = 'The connection to Redis broke, and could not be made again';
    expect(typedError(error)).toMatchObject({ name: 'StorageUnavailable', message, cause: error });
  });
  it('says that the server of a slot is away', () => {
    const error = new Error('Too many Cluster redirections. Last error: ReplyError: MOVED 9842 10.0.0.2:6379');
    const message = 'No connection to the server of slot 9842 (10.0.0.2:6379)';
    expect(typedError(error)).toMatchObject({ name: 'StorageUnavailable', message });
  });
  it('says what a slot that is being moved means', () => {
    const message = 'Slot 1584 is being moved to 10.0.0.3:6379, and not used until it is there';
    expect(typedError(new ReplyError('ASK 1584 10.0.0.3:6379'))).toMatchObject({ name: 'StorageUnavailable', message });
  });
  it.each([
    new TypeError('x is not a function'),
    new ReplyError("ERR unknown command 'HSETT'"),
    new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value'),
    new DOMException('This operation was aborted', 'AbortError'),
  ])('%s is no storage failure', (error) => {
    expect(typedError(error)).toBe(error);
  });
});
