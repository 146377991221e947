/** The code that receivers copy: each language that is installed runs the same vectors. Node and Python always do. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { verifySignature } from '@posthorn/receiver';
import { root } from '../scripts/folder.ts';
import { python } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import { ownDir } from './own.ts';

const SNIPPETS = join(root, 'packages/receiver/snippets');
interface Vector {
  name: string;
  valid: boolean;
  /** In base64. */
  body: string;
  header: string;
  secret: string;
  now: number;
}
const vectors: Vector[] = JSON.parse(readFileSync(join(SNIPPETS, 'vectors.json'), 'utf8'));

/**
 * A program around the snippet. It reads a line for each vector, four fields in base64 between tabs, and prints true or
 * false. An empty header is to it a request without one, where the language has a word for that.
 */
interface Language {
  snippet: string;
  command: string;
  args: string[];
  /** The file that contains the program, and its text. */
  program: [file: string, text: string];
}

const LANGUAGES: Record<string, Language> = {
  'Node.js': {
    snippet: 'verify.mjs',
    command: process.execPath,
    args: ['main.mjs'],
    program: [
      'main.mjs',
      `import { readFileSync } from 'node:fs';
import { verify } from './verify.mjs';
for (const line of readFileSync(0, 'utf8').split('\\n').filter(Boolean)) {
  const [body, header, secret, now] = line.split('\\t').map((field) => Buffer.from(field, 'base64'));
  console.log(verify(body, header.toString() || undefined, secret.toString(), Number(now)));
}`,
    ],
  },
  Python: {
    snippet: 'verify.py',
    command: 'python3',
    args: ['main.py'],
    program: [
      'main.py',
      `import base64, sys
from verify import verify
for line in sys.stdin.read().splitlines():
    body, header, secret, now = [base64.b64decode(field) for field in line.split("\\t")]
    print("true" if verify(body, header.decode() or None, secret.decode(), int(now)) else "false")`,
    ],
  },
  Go: {
    snippet: 'verify.go',
    command: 'go',
    args: ['run', '.'],
    program: [
      'main.go',
      `package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var fields [4][]byte
		for i, field := range strings.Split(lines.Text(), "\\t") {
			fields[i], _ = base64.StdEncoding.DecodeString(field)
		}
		now, _ := strconv.ParseInt(string(fields[3]), 10, 64)
		fmt.Println(Verify(fields[0], string(fields[1]), string(fields[2]), time.Unix(now, 0)))
	}
}`,
    ],
  },
  Java: {
    snippet: 'Verify.java',
    command: 'java',
    args: ['-cp', '.', 'Main'],
    program: [
      'Main.java',
      `import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;

final class Main {
  public static void main(String[] args) throws Exception {
    Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
    while (lines.hasNextLine()) {
      String[] fields = lines.nextLine().split("\\t", -1);
      String[] texts = new String[4];
      for (int i = 1; i < 4; i++) texts[i] = new String(Base64.getDecoder().decode(fields[i]), StandardCharsets.UTF_8);
      System.out.println(Verify.verify(Base64.getDecoder().decode(fields[0]), texts[1].isEmpty() ? null : texts[1], texts[2], Long.parseLong(texts[3])));
    }
  }
}`,
    ],
  },
  PHP: {
    snippet: 'verify.php',
    command: 'php',
    args: ['main.php'],
    program: [
      'main.php',
      `<?php
require 'verify.php';
foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
    [$body, $header, $secret, $now] = array_map('base64_decode', explode("\\t", $line));
    echo verify($body, $header === '' ? null : $header, $secret, (int) $now) ? "true\\n" : "false\\n";
}`,
    ],
  },
  Ruby: {
    snippet: 'verify.rb',
    command: 'ruby',
    args: ['main.rb'],
    program: [
      'main.rb',
      `require "base64"
require_relative "verify"
$stdin.each_line(chomp: true) do |line|
  body, header, secret, now = line.split("\\t", -1).map { |field| Base64.strict_decode64(field) }
  puts verify(body, header.empty? ? nil : header, secret, now.to_i)
end`,
    ],
  },
  'C#': {
    snippet: 'Verify.cs',
    command: 'dotnet',
    args: ['run'],
    program: [
      'Program.cs',
      `using System;
using System.Linq;
using System.Text;
while (Console.ReadLine() is { } line)
{
    var fields = line.Split('\\t').Select(Convert.FromBase64String).ToArray();
    var text = fields.Select(Encoding.UTF8.GetString).ToArray();
    Console.WriteLine(Webhook.Verify(fields[0], text[1] == "" ? null : text[1], text[2], DateTimeOffset.FromUnixTimeSeconds(long.Parse(text[3]))) ? "true" : "false");
}`,
    ],
  },
};

/** What a language needs besides its program. */
const PROJECT: Record<string, (dir: string, run: (command: string, args: string[]) => void) => void> = {
  Go(dir) {
    writeFileSync(join(dir, 'go.mod'), 'module snippet\n\ngo 1.20\n');
    const file = join(dir, 'verify.go');
    writeFileSync(file, readFileSync(file, 'utf8').replace('package webhook', 'package main'));
  },
  // The JDK has a compiler; a runtime alone can't run two files.
  Java: (_dir, run) => run('javac', ['-encoding', 'UTF-8', 'Main.java', 'Verify.java']),
  'C#'(dir) {
    // It needs no package, so no source of packages is asked.
    const settings =
      '<OutputType>Exe</OutputType><TargetFramework>net8.0</TargetFramework><RollForward>Major</RollForward><RestoreSources>.</RestoreSources>';
    writeFileSync(
      join(dir, 'snippet.csproj'),
      `<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>${settings}</PropertyGroup></Project>`,
    );
  },
};

const base64 = (text: string) => Buffer.from(text).toString('base64');
const input = vectors
  .map(({ body, header, secret, now }) => [body, ...[header, secret, String(now)].map(base64)].join('\t'))
  .join('\n');

/** Whether a language can be run here. Python always can: it is downloaded like Redis. */
function isInstalled(name: string): boolean {
  const commands = [LANGUAGES[name]!.command, ...(name === 'Java' ? ['javac'] : [])];
  return name === 'Python' || commands.every((command) => spawnSync(command, ['--version']).error === undefined);
}

/** Resolves with the verdict on each vector. */
async function verdicts(name: string): Promise<string[]> {
  const { snippet, command, args, program } = LANGUAGES[name]!;
  const path = name === 'Python' ? (await providePrograms([python], { say: () => undefined }))[python.name]! : command;
  const dir = join(ownDir(), 'snippet');
  mkdirSync(dir);
  copyFileSync(join(SNIPPETS, snippet), join(dir, snippet));
  writeFileSync(join(dir, program[0]), program[1]);
  // Nothing of this machine's configuration, except Go's cache: with these flags (scripts/programs/helm.ts) it may have
  // Go's library already. Without optimization, compiling that takes half as long.
  const env = {
    PATH: [process.env.PATH, '/usr/bin'].join(delimiter),
    HOME: dir,
    GOTOOLCHAIN: 'local',
    GOFLAGS: '-mod=mod -trimpath "-gcflags=all=-N -l"',
    GOCACHE: process.env.GOCACHE ?? join(homedir(), '.cache/go-build'),
    CGO_ENABLED: '0',
    // Without a greeting on stdout, reports, a certificate and a library that not every machine has.
    DOTNET_NOLOGO: '1',
    DOTNET_CLI_TELEMETRY_OPTOUT: '1',
    DOTNET_GENERATE_ASPNET_CERTIFICATE: 'false',
    DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1',
  };
  const run = (program: string, args: string[], input = '') => {
    const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: dir, encoding: 'utf8', env, input });
    if (status !== 0) throw new Error(`${program}: ${error?.message ?? stderr}`);
    return stdout;
  };
  PROJECT[name]?.(dir, run);
  return run(path, args, input).trim().split(/\r?\n/);
}

describe('the code for receivers', () => {
  const installed = Object.keys(LANGUAGES).filter(isInstalled);
  it('is run in Node.js and Python at least', () => {
    expect(installed).toEqual(expect.arrayContaining(['Node.js', 'Python']));
  });
  it.each(installed)('in %s agrees with all vectors', async (name) => {
    const found = await verdicts(name);
    expect(vectors.map((vector, i) => [vector.name, found[i]])).toEqual(
      vectors.map((vector) => [vector.name, String(vector.valid)]),
    );
  });
  it('agrees with packages/receiver', async () => {
    for (const { name, body, header, secret, now, valid } of vectors) {
      const check = { header, secrets: [secret], body: Uint8Array.from(Buffer.from(body, 'base64')), nowS: now };
      // It rejects for an empty secret.
      expect([name, await verifySignature(check).catch(() => false)]).toEqual([name, valid]);
    }
  });
});
