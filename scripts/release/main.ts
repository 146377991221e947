/**
 * `npm run release`: `--check` says whether versions, changelog and fixtures agree (with `--tag=v1.2.3` also with that
 * tag); `--version=1.2.3` writes a version everywhere; `--notes` prints the notes of this version, in a workflow of
 * GitHub with links that work on the page of the release.
 */
import { readArguments, stopWith } from '../arguments.ts';
import { root } from '../folder.ts';
import { checkRelease, linkNotes, notesOf, versionOf, writeVersion } from './release.ts';

const given = readArguments({
  check: { type: 'boolean', default: false },
  tag: { type: 'string' },
  version: { type: 'string' },
  notes: { type: 'boolean', default: false },
});
if (given.version !== undefined) writeVersion(root, given.version);
if (given.notes) {
  const version = versionOf(root);
  const notes = notesOf(root, version) ?? stopWith(`CHANGELOG.md has no section ${version}.`);
  const repository = process.env.GITHUB_REPOSITORY;
  console.log(repository ? linkNotes(notes, version, repository) : notes);
}
if (given.check) {
  const problems = checkRelease(root, given.tag);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
  console.log(`${versionOf(root)}: versions, changelog and fixtures agree.`);
}
if (!given.check && !given.notes && given.version === undefined)
  stopWith('Options: --check, --tag=…, --version=…, --notes.');
