/** Records that are not as they must be: what is said of them, and what becomes of those beside them. */
import { expect, it } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { decodeNamed, loadOthers, loadReadable, readNamed, separate, UnreadableRecord } from './decode-named.ts';

it('names the record and its first number that is no time, or what the decoder threw', () => {
  const decode = (decoded: object) => () => decodeNamed('delivery', 'dlv_1', () => decoded);
  expect(decode({ createdAtMs: 8.64e15, finishedAtMs: null, count: Number.NaN })()).toMatchObject({
    finishedAtMs: null,
  });
  const start = "The record of delivery dlv_1 can't be read: ";
  expect(decode({ createdAtMs: Number.NaN })).toThrow(`${start}its createdAtMs is NaN`);
  expect(decode({ createdAtMs: 9e15 })).toThrow(`${start}its createdAtMs is 9000000000000000`);
  expect(() => decodeNamed('delivery', 'dlv_1', () => JSON.parse('{') as object)).toThrow(start);
  expect(decodeNamed('delivery', 'dlv_1', () => undefined)).toBeUndefined();
});

it('says nothing of a damaged JSON text, which may be a payload, also not in its cause', () => {
  const decode = () => decodeNamed('event', 'evt_1', () => JSON.parse('{"name": Ångström}') as object);
  expect(decode).toThrow(expect.objectContaining({ message: expect.stringMatching(/: one of its texts is no JSON$/) }));
  expect(decode).toThrow(expect.not.objectContaining({ cause: expect.anything() }));
});

it('names the record that Redis refuses to read, and passes on everything else', async () => {
  const wrongType = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' });
  const named = { name: 'UnreadableRecord', message: "The record of delivery dlv_1 can't be read: WRONGTYPE" };
  await expect(readNamed('delivery', 'dlv_1', Promise.reject(wrongType))).rejects.toMatchObject(named);
  for (const other of [new StorageUnavailable('away'), new UnreadableRecord('event', 'e', 'x'), new Error('bug')])
    await expect(readNamed('delivery', 'dlv_1', Promise.reject(other))).rejects.toBe(other);
});

it('loads those beside records that cannot be read, one by one only where there is one', async () => {
  const calls: string[][] = [];
  const load = async (ids: string[]) => {
    calls.push(ids);
    const one = (id: string) => decodeNamed('delivery', id, () => (id === 'gone' ? undefined : JSON.parse(id)));
    return ids.map(one);
  };
  expect(await loadReadable(load, ['{}', 'gone'])).toEqual([{}, undefined]);
  expect(calls).toEqual([['{}', 'gone']]);
  const loaded = await loadReadable(load, ['{"a":1}', '{', 'gone', '[]']);
  expect(loaded).toEqual([{ a: 1 }, expect.any(UnreadableRecord), undefined, []]);
  expect(separate(loaded)).toMatchObject({ items: [{ a: 1 }, []], unreadable: [{ id: '{' }] });
  const unreadable = [new UnreadableRecord('event', 'e', 'x')];
  expect(await loadOthers(load, ['{', '[]'], unreadable)).toEqual([[]]);
  expect(unreadable).toMatchObject([{ id: 'e' }, { id: '{', summary: "The record of delivery { can't be read" }]);
});

it('passes on what is wrong with all of them', async () => {
  const bug = new TypeError('bug');
  await expect(loadReadable(() => Promise.reject(bug), ['{}'])).rejects.toBe(bug);
});
