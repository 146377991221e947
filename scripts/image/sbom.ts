/**
 * The software bill of materials of the image, in CycloneDX: Node, every package in it, and those that the page was
 * built from.
 */
import { APPS, neededPackages } from './packages.ts';

/** The document. `version` is Posthorn's, `nodeVersion` that of the Node in the image. */
export function sbom(version: string, nodeVersion: string): object {
  const installed = neededPackages(APPS).filter(({ isWorkspace }) => !isWorkspace);
  const known = new Set(installed.map(purlOf));
  const bundled = neededPackages(['apps/console'], { bundled: true }).filter(
    (one) => !one.isWorkspace && !known.has(purlOf(one)),
  );
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'application', name: 'posthorn', version, 'bom-ref': `posthorn@${version}` },
    },
    components: [
      {
        type: 'platform',
        name: 'node',
        version: nodeVersion,
        'bom-ref': `node@${nodeVersion}`,
        purl: `pkg:generic/node@${nodeVersion}`,
      },
      ...installed.map((one) => component(one, 'node_modules')),
      ...bundled.map((one) => component(one, "operators' page")),
    ],
  };
}

type Package = ReturnType<typeof neededPackages>[number];

function component(one: Package, where: string): object {
  const { name, version, license, integrity } = one;
  const [, algorithm, digest] = /^(sha\d+)-(.+)$/.exec(integrity ?? '') ?? [];
  return {
    type: 'library',
    name,
    version,
    // A version may be installed twice.
    'bom-ref': one.path,
    purl: purlOf(one),
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(algorithm && digest
      ? { hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }] }
      : {}),
    properties: [{ name: 'posthorn:in', value: where }],
  };
}

const purlOf = ({ name, version }: Package) => `pkg:npm/${name.replace('@', '%40')}@${version}`;
