/**
 * The schemas of Kubernetes and of its extensions that the chart uses, from Go modules; a field that no schema has is
 * an error.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import { findGo } from '../../scripts/programs/helm.ts';

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
}

/** Validators by `apiVersion/kind`. */
export type Schemas = (manifest: Manifest) => ValidateFunction;

type Schema = Record<string, unknown>;

const KUBERNETES = 'k8s.io/kubernetes@v1.36.3';
/** The definitions of custom resources, by module. */
const EXTENSIONS: Record<string, string[]> = {
  'github.com/kedacore/keda/v2@v2.21.0': ['config/crd/bases/keda.sh_scaledobjects.yaml'],
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': [
    'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
  'sigs.k8s.io/gateway-api@v1.6.3': ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
};
const DEFINITIONS = 'kubernetes#/definitions/';
const METADATA = { $ref: `${DEFINITIONS}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta` };
const INT_OR_STRING = { type: ['integer', 'string'] };

/** Downloads the modules and reads the schemas. Needs Go. */
export function loadSchemas(): Schemas {
  const swagger = JSON.parse(readFileSync(join(download(KUBERNETES), 'api/openapi-spec/swagger.json'), 'utf8'));
  const definitions: Record<string, Schema> = strict(swagger.definitions) as Record<string, Schema>;
  // As text they are strings; the server takes numbers too.
  definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString'] = INT_OR_STRING;
  definitions['io.k8s.apimachinery.pkg.api.resource.Quantity'] = { type: ['number', 'string'] };
  const kinds = new Map<string, Schema>();
  for (const [name, definition] of Object.entries(swagger.definitions as Record<string, Schema>)) {
    for (const { group, version, kind } of (definition['x-kubernetes-group-version-kind'] ?? []) as Kind[]) {
      kinds.set(keyOf(group === '' ? version : `${group}/${version}`, kind), { $ref: `${DEFINITIONS}${name}` });
    }
  }
  for (const [module, files] of Object.entries(EXTENSIONS)) {
    const dir = download(module);
    for (const file of files) {
      for (const [key, schema] of customKinds(readFileSync(join(dir, file), 'utf8'))) kinds.set(key, schema);
    }
  }
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: 'kubernetes', definitions });
  return ({ apiVersion, kind }) => {
    const schema = kinds.get(keyOf(apiVersion, kind));
    if (schema === undefined) throw new Error(`There is no schema of ${keyOf(apiVersion, kind)}.`);
    // It compiles each schema object once.
    return ajv.compile(schema);
  };
}

interface Kind {
  group: string;
  version: string;
  kind: string;
}

const keyOf = (apiVersion: string, kind: string) => `${apiVersion}/${kind}`;

/** The folder of a Go module, which Go downloads if it does not have it. */
function download(module: string): string {
  const go = findGo();
  if (go === undefined) throw new Error('There is no Go to download the schemas with.');
  return JSON.parse(execFileSync(go, ['mod', 'download', '-json', module], { encoding: 'utf8' })).Dir;
}

/** The schemas of a custom resource, by kind. */
function customKinds(text: string): [string, Schema][] {
  const { group, names, versions } = parse(text).spec as {
    group: string;
    names: { kind: string };
    versions: { name: string; schema: { openAPIV3Schema: { properties: Schema } } }[];
  };
  return versions.map(({ name, schema }) => {
    const { openAPIV3Schema: whole } = schema;
    return [
      keyOf(`${group}/${name}`, names.kind),
      strict({ ...whole, properties: { ...whole.properties, metadata: METADATA } }) as Schema,
    ];
  });
}

/**
 * A copy of a schema in which every object with known properties has no others, as a server with strict validation
 * wants it.
 */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const given = schema as Schema;
  if (given['x-kubernetes-int-or-string'] === true) return INT_OR_STRING;
  const copy: Schema = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, strict(value)]));
  // Go writes the flag before the group.
  if (typeof given.pattern === 'string') copy.pattern = given.pattern.replace(/^(\^?)\(\?i\)(.*)$/, '$1(?i:$2)');
  const isObject = typeof given.properties === 'object' && given.type === 'object';
  if (isObject && given.additionalProperties === undefined && !given['x-kubernetes-preserve-unknown-fields'])
    copy.additionalProperties = false;
  return copy;
}
