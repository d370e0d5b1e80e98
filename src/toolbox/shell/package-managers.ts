import {
  anyOf,
  both,
  each,
  NOTHING,
  type Reading,
  runsTheRest,
  type Started,
  starts,
  textOf,
  unclear,
  type Words,
} from './started.js';

const QUIET = /^(-s|--silent|--if-present|--quiet)$/;
const SHORT: Readonly<Record<string, string>> = {
  test: 'test',
  t: 'test',
  tst: 'test',
  start: 'start',
  stop: 'stop',
  restart: 'restart',
};
const RUN = new Set(['run', 'run-script', 'rum', 'urn']);
/** Of npm and bun; for the others `x` is the name of a script. */
const EXEC: Readonly<Record<string, RegExp>> = {
  npm: /^(exec|x)$/,
  bun: /^x$/,
  pnpm: /^(exec|dlx)$/,
  yarn: /^(exec|dlx)$/,
  yarnpkg: /^(exec|dlx)$/,
};
/** What these do themselves, without starting anything. npm finds its commands by their beginnings, too. */
const OWN =
  /^(ls|list|la|ll|outdated|view|info|show|why|config|get|cache|login|logout|whoami|bin|root|prefix|fund|search|doctor|explain|query|pkg|dist-tag|owner|token|ping|sbom|store|-v|--version|--help)$/;
const INSTALLS =
  /^(install|i|ci|add|in|ins|inst|insta|instal|isnt|isnta|isntal|isntall|clean-install|ic|install-clean|install-test|it|cit|link|ln|unlink|remove|rm|r|un|uninstall|update|up|upgrade|udpate|rebuild|rb|dedupe|ddp|prune|import|audit)$/;
/** Steps of the package itself, each with what comes before and after it. */
const STEPS: Readonly<Record<string, readonly string[]>> = {
  install: ['install', 'prepublish', 'prepare', 'dependencies'],
  pack: ['pack', 'prepare'],
  publish: ['publish', 'prepublishOnly', 'pack', 'prepare'],
  version: ['version'],
};
/** Options that change which script runs, where, or in which shell. */
const CHANGES_SCRIPT =
  /^(--?(script-shell|shell|prefix|node-options|workspaces?|include-workspace-root|ws|filter|recursive|cwd|dir|git|editor|viewer|browser|userconfig|globalconfig|before|require|import|eval|use-yarnrc|shell-emulator|scripts-prepend-node-path|g|global|location)(=|$)|-[wCFr])/;

const CHANGES_SETTINGS = /^(set|delete|rm|unset|edit|fix)$/;

function lifeCycle(command: string): Started {
  const names = Object.hasOwn(STEPS, command) ? (STEPS[command] ?? []) : [];
  return starts({ packageScripts: names.map((name) => ({ name, rest: [], missing: 'nothing' })) });
}

/** Packages that are put in bring scripts, and which, nobody knows before they are there. */
function installs(args: Words, program: string): Started {
  const settings = args.map((word) => textOf(word) ?? '…').filter((text) => text.includes('ignore-scripts'));
  if (settings.length > 0 && settings.every((text) => text === '--ignore-scripts')) return NOTHING;
  const why = `'${program}' runs the scripts of the packages that it installs, unless it is given --ignore-scripts`;
  return both(lifeCycle('install'), unclear(why));
}

/** Its own commands; nothing where the name is of none. */
function ownCommand(command: string, rest: Words, program: string): Started | undefined {
  if (EXEC[program]?.test(command) === true)
    return both(executes(rest, program), command === 'dlx' ? unclear(`'${program} dlx' installs`) : NOTHING);
  if (INSTALLS.test(command) && !(command === 'audit' && rest.length === 0)) {
    const tests = /^(it|cit|install-test)$/.test(command) ? [{ name: 'test', rest: [] }] : [];
    return both(installs(rest, program), starts({ packageScripts: tests }));
  }
  const others = rest.filter((word) => textOf(word)?.startsWith('-') !== true);
  if (Object.hasOwn(STEPS, command)) {
    const isOther = others.length > 0 && command !== 'version';
    const why = `which package '${program} ${command}' is about is not known before`;
    return both(lifeCycle(command), isOther ? unclear(why) : NOTHING);
  }
  if (command === 'init' && others.length === 0) return NOTHING;
  if (command === 'config' && others.some((word) => CHANGES_SETTINGS.test(textOf(word) ?? 'set')))
    return unclear(`'${program} config' changes which programs it runs, and how`);
  const edits = rest.some((word) => textOf(word) === 'edit');
  if ((OWN.test(command) || command === 'audit') && !edits)
    // For some versions of yarn and pnpm it is the name of a script.
    return program === 'npm'
      ? NOTHING
      : starts({ packageScripts: [{ name: command, rest, missing: 'nothing' }] });
  return undefined;
}

/** `npm run build`, `npm test`, `yarn build`, `npm install`. */
const packageManager: Reading = (args, program) => {
  const end = args.findIndex((word) => textOf(word) === '--');
  const changing = (end < 0 ? args : args.slice(0, end)).find((word) =>
    CHANGES_SCRIPT.test(textOf(word) ?? ''),
  );
  const rest = args.filter((word) => !QUIET.test(textOf(word) ?? ''));
  const read = withoutQuiet(rest, program);
  const isExec = EXEC[program]?.test(textOf(rest[0]) ?? '') === true;
  if (changing === undefined || isExec) return read;
  return both(read, unclear(`'${program}' may run something else with '${textOf(changing) ?? ''}'`));
};

function withoutQuiet(rest: Words, program: string): Started {
  const [first, ...behind] = rest;
  const command = textOf(first);
  if (first === undefined) return program === 'npm' ? NOTHING : installs(rest, program);
  if (command === undefined) return unclear(`what '${program}' runs is not known before`);
  const own = ownCommand(command, behind, program);
  if (own !== undefined) return own;
  const isRun = RUN.has(command);
  const short = Object.hasOwn(SHORT, command) ? SHORT[command] : undefined;
  if (!isRun && short === undefined) {
    const isOption = command.startsWith('-');
    if (program === 'npm' || isOption || /^(workspaces?|create|init|set|plugin|node|help)$/.test(command))
      return anyOf(rest, `'${program} ${command}' is not understood, or runs others`);
  }
  if (isRun && behind.length === 0) return NOTHING;
  return runsScript(isRun ? behind : [{ kind: 'known', text: short ?? command }, ...behind], program);
}

function runsScript([script, ...rest]: Words, program: string): Started {
  const name = textOf(script);
  if (name === undefined || name.startsWith('-'))
    return unclear(`which script '${program}' runs is not understood`);
  const words = rest.filter((word) => textOf(word) !== '--');
  return starts({ packageScripts: [{ name, rest: words }] });
}

const executes: Reading = (args, program) => {
  const called = args.findIndex((word) => ['-c', '--call'].includes(textOf(word) ?? ''));
  const script = called < 0 ? undefined : textOf(args[called + 1]);
  if (script !== undefined) return starts({ scripts: [script] });
  return runsTheRest({ flags: /^(-y|--yes|-q|--quiet|--no|--bun)$/, values: /^(-p|--package)$/ })(
    args,
    program,
  );
};

/** `run-s clean build`: every word is a script. */
const runsScripts: Reading = (args, program) => {
  const texts = args.map((word) => textOf(word) ?? '-');
  const names = texts.filter((text) => !text.startsWith('-'));
  const isPlain = texts.every((text) => /^(-[nslc]|[\w][\w.:-]*)$/.test(text));
  return starts({
    packageScripts: names.map((name) => ({ name: name.split(/\s/)[0] ?? name, rest: [] })),
    unclear: isPlain ? [] : [`what '${program}' runs is not understood`],
  });
};

/** `corepack yarn@4 build` is `yarn build`. */
const corepack: Reading = ([first, ...rest], program) => {
  const manager = /^(npm|npx|yarn|yarnpkg|pnpm|pnpx)(@|$)/.exec(textOf(first) ?? '')?.[1];
  if (manager !== undefined) return starts({ commands: [[{ kind: 'known', text: manager }, ...rest]] });
  return /^(enable|disable|--version|--help)$/.test(textOf(first) ?? '')
    ? NOTHING
    : anyOf(rest, `'${program}' may run others`);
};

export const PACKAGE_MANAGERS: Readonly<Record<string, Reading>> = {
  ...each('npm pnpm yarn yarnpkg', packageManager),
  ...each('npx bunx pnpx', executes),
  ...each('run-s run-p npm-run-all npm-run-all2', runsScripts),
  corepack,
};

/** `node --run build`: without the option no script runs. */
const nodeRun: Reading = (args, program) => {
  const at = args.findIndex((word) => /^--run(=|$)/.test(textOf(word) ?? ''));
  if (at < 0) return NOTHING;
  const name = textOf(args[at])?.slice('--run='.length) ?? '';
  const rest = args.slice(at + 1);
  return runsScript(name === '' ? rest : [{ kind: 'known', text: name }, ...rest], program);
};

const denoTask: Reading = ([first, ...rest], program) =>
  textOf(first) === 'task'
    ? both(
        starts({
          packageScripts: [{ name: textOf(rest[0]) ?? '', rest: rest.slice(1), missing: 'nothing' }],
        }),
        unclear(`what '${program} task' runs does not stand in the command`),
      )
    : NOTHING;

const bunCommands: Reading = (args, program) => {
  const [first, ...rest] = args;
  const command = textOf(first) ?? '-';
  if (command === 'exec') return starts({ scripts: rest.map((word) => textOf(word) ?? '"$x"') });
  if (/^(--version|-v|--help|build|test)$/.test(command)) return NOTHING;
  const file = RUN.has(command) ? textOf(rest[0]) : command;
  // A file is a program of its own, as with node.
  if (/\/|\.[cm]?[jt]sx?$/.test(file ?? '')) return NOTHING;
  return packageManager(args, program);
};

/** What languages have of package managers, beside programs that stand in their words. */
export const SCRIPT_RUNNERS: Readonly<Record<'node' | 'deno' | 'bun', Reading>> = {
  node: nodeRun,
  deno: denoTask,
  bun: bunCommands,
};

/** Settings of package managers that say which programs they run, or where others of these stand, by file. */
const RUNNING_SETTINGS: Readonly<Record<string, RegExp>> = {
  '.npmrc':
    /^\s*(["']?(script-shell|shell|shell-emulator|node-options|git|editor|viewer|browser|init-module|init\.module|onload-script|prefix|userconfig|globalconfig|scripts-prepend-node-path|pnpmfile|global-pnpmfile|use-node-version|node-version|python|ignore-pnpmfile)["']?(\[\])?\s*(=|$)|[^=\n#;]*\\)/im,
  '.yarnrc': /^\s*(["']?(script-shell|yarn-path|--[\w.-]*(script-shell|cwd))["']?\s)/m,
  '.yarnrc.yml':
    /^\s*(["']?yarnPath["']?\s*:(?!\s*\.yarn\/releases\/yarn-[\d.]+\.cjs\s*$)|["']?injectEnvironmentFiles)/m,
  '.pnpmfile.cjs': /^/,
  'bunfig.toml': /^\s*(preload|shell|bun)\s*=/m,
};

const READS_SETTINGS = /^(npm|npx|pnpm|pnpx|yarn|yarnpkg|bun|bunx)$/;

/** The settings in a folder with which a package manager runs more than its words say. */
export function settingsThatRun(
  program: string | undefined,
  textIn: (name: string) => string | undefined,
): readonly string[] {
  if (!READS_SETTINGS.test(program ?? '')) return [];
  return Object.entries(RUNNING_SETTINGS)
    .filter(([name, setting]) => {
      const text = textIn(name);
      return text !== undefined && setting.test(text);
    })
    .map(([name]) => `'${name}' says which programs '${program}' runs`);
}

/** Files by which package managers find scripts, and what they run them with. */
export const SCRIPT_FILES =
  'package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml bunfig.toml'.split(' ');
