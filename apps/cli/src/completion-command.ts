/** The command `completion`: prints a script that completes commands, options and their values in a shell. */
import { Argument, type CommandUnknownOpts } from '@commander-js/extra-typings';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What a shell completes: each command with its options, and the values of those that have a choice. */
interface Completable {
  name: string;
  description: string;
  options: { flag: string; description: string; choices: readonly string[]; takesValue: boolean }[];
}

/** Adds the command. Its scripts know the commands that `program` has when it runs. */
export function addCompletionCommand(program: CommandUnknownOpts): void {
  program
    .command('completion')
    .description('print a completion script; bash and zsh: source <(posthorn completion bash), fish: … | source')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action((shell) => {
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
      process.stdout.write(scripts[shell](completables(program)));
    });
}

function completables(program: CommandUnknownOpts): Completable[] {
  const named = program.commands.flatMap((command) => {
    return [command.name(), ...command.aliases()].map((name) => ({ name, command }));
  });
  return named.map(({ name, command }) => ({
    name,
    description: command.description(),
    options: [...command.options, ...program.options].flatMap((option) =>
      option.long
        ? {
            flag: option.long,
            description: option.description,
            choices: option.argChoices ?? [],
            takesValue: option.required || option.optional,
          }
        : [],
    ),
  }));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Returns the branches of a shell's `case` for the options with values: their choices, or `otherwise` for any value.
 */
function valueBranches(commands: Completable[], offer: (choices: readonly string[]) => string, otherwise: string) {
  return commands.flatMap(({ name, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(
        ({ flag, choices }) =>
          `    ${quoted(`${name} ${flag}`)}) ${choices.length > 0 ? offer(choices) : otherwise}; return;;`,
      ),
  );
}

function bashScript(commands: Completable[]): string {
  const offer = (words: readonly string[]) => `COMPREPLY=( $(compgen -W ${quoted(words.join(' '))} -- "$current") )`;
  return `# Completion of posthorn in bash. Use: source <(posthorn completion bash)
_posthorn() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  COMPREPLY=()
  case "$command $previous" in
${valueBranches(commands, offer, 'COMPREPLY=()').join('\n')}
  esac
  case "$command" in
    '') ${offer(commands.map(({ name }) => name))};;
${commands.map(({ name, options }) => `    ${name}) ${offer(options.map(({ flag }) => flag))};;`).join('\n')}
  esac
}
complete -o default -F _posthorn posthorn
`;
}

function zshScript(commands: Completable[]): string {
  const described = (items: [name: string, description: string][]) =>
    items.map(([name, description]) => quoted(`${name}:${description.replaceAll(':', '\\:')}`)).join(' ');
  const branches = commands.map(({ name, options }) => {
    const flags = options.map(({ flag, description }): [string, string] => [flag, description]);
    return `    ${name}) items=(${described(flags)}); _describe option items;;`;
  });
  const names = commands.map(({ name, description }): [string, string] => [name, description]);
  return `#compdef posthorn
# Completion of posthorn in zsh, after compinit. Use: source <(posthorn completion zsh)
_posthorn() {
  local previous="\${words[CURRENT-1]}" command='' word
  local -a items
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  case "$command $previous" in
${valueBranches(commands, (choices) => `compadd -- ${choices.join(' ')}`, '_files').join('\n')}
  esac
  case "$command" in
    '') items=(${described(names)}); _describe command items;;
${branches.join('\n')}
  esac
}
compdef _posthorn posthorn
`;
}

function fishScript(commands: Completable[]): string {
  const lines = commands.flatMap(({ name, description, options }) => [
    `complete -c posthorn -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`,
    ...options.map(({ flag, description: what, choices, takesValue }) => {
      const values = takesValue ? ` -r${choices.length > 0 ? ` -f -a ${quoted(choices.join(' '))}` : ''}` : '';
      return `complete -c posthorn -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}${values} -d ${quoted(what)}`;
    }),
  ]);
  return `# Completion of posthorn in fish. Use: posthorn completion fish | source
complete -c posthorn -f
${lines.join('\n')}
`;
}
