import { resolve } from 'node:path';
import {
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
  warnAuthor,
} from '../errors/author-fault.js';
import { isRecord } from '../kernel/json.js';
import { RECORD } from '../kernel/options.js';
import type { PermissionsOptions } from '../toolbox/permissions/index.js';
import { AgentFaults } from './agent-faults.js';
import { AGENT_OPTIONS, type AgentOptions, type ConfiguredAgentOptions } from './agent-options.js';
import { type ConfigFile, readConfigFile, readUntrustedFileIfThere } from './config-file.js';

/** The options of an agent, of code and files together. */
export interface ReadOptions {
  readonly options: AgentOptions;
  readonly faults: AgentFaults;
  /** The folder where the paths of an option begin: that of its file, or of the process. */
  baseOf(option: string): string;
  /** What the folder brings with it. */
  readonly folderPermissions: Pick<PermissionsOptions, 'mode' | 'rules'> | undefined;
}

/**
 * Reads the options of code, and those of the files that they name.
 *
 * @throws InvalidOptionsError (521) where a file cannot be read, or code gives no options.
 */
export function readAgentOptions(given: AgentOptions | ConfiguredAgentOptions): ReadOptions {
  if (!RECORD.accepts(given)) refuseOptions(invalidOptions(given, AGENT_OPTIONS));
  const fileFaults: InvalidOption[] = [];
  const file = readFile(given.configFile, readConfigFile, fileFaults);
  const folder = folderOf(given.folder) ?? folderOf(file?.options.folder, file?.folder) ?? process.cwd();
  const ofFolder = readFile(
    given.folderConfigFile,
    (name) => readUntrustedFileIfThere(name, folder),
    fileFaults,
  );
  const own = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const isOfFile = (option: string): boolean => {
    const [name = ''] = option.split(/[.[]/, 1);
    return file !== undefined && Object.hasOwn(file.options, name) && !Object.hasOwn(own, name);
  };
  const faults = new AgentFaults(
    (option) => {
      if (option.startsWith('folderConfigFile') && ofFolder !== undefined) return ofFolder.path;
      return isOfFile(option) ? (file?.path ?? '') : 'createAgent';
    },
    [file, ofFolder].flatMap((one) => one?.path ?? []),
  );
  for (const fault of [...fileFaults, ...(file?.faults ?? [])]) faults.tell(fault);
  // What is there, but undefined, is the file's to say; where that is silent, a rule may not want it.
  const options = { ...given, ...file?.options, ...own } as unknown as AgentOptions;
  for (const { option, ...fault } of invalidOptions(withoutMissing(options, fileFaults), AGENT_OPTIONS))
    if (!faults.has(option)) faults.add(option, fault);
  return {
    options,
    faults,
    baseOf: (option) => (isOfFile(option) && file !== undefined ? file.folder : process.cwd()),
    folderPermissions: readFolderPermissions(ofFolder, { faults, options }),
  };
}

function folderOf(given: unknown, base = '.'): string | undefined {
  return typeof given === 'string' ? resolve(base, given) : undefined;
}

/** Of a file that cannot be read, nobody knows what else is missing. */
function withoutMissing(options: AgentOptions, fileFaults: readonly InvalidOption[]): AgentOptions {
  if (fileFaults.length === 0) return options;
  return { ...options, provider: options.provider ?? 'offline', model: options.model ?? 'unknown' };
}

function readFile<File>(
  name: unknown,
  read: (name: string) => File,
  faults: InvalidOption[],
): File | undefined {
  if (typeof name !== 'string' || name.trim() === '') return undefined;
  try {
    return read(name);
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) throw error;
    faults.push(...error.faults);
    return undefined;
  }
}

/** Only what makes things stricter is heard of a file that a stranger may have written. */
function readFolderPermissions(
  file: ConfigFile | undefined,
  { faults, options }: { readonly faults: AgentFaults; readonly options: AgentOptions },
): ReadOptions['folderPermissions'] {
  if (file === undefined) return undefined;
  const { permissions, ...others } = file.options;
  for (const name of Object.keys(others)) {
    const fault = unheard(name, file);
    if (AGENT_OPTIONS.rules.has(name)) warnAuthor(fault, options.logger);
    else
      for (const unknown of invalidOptions({ [name]: 0 }, AGENT_OPTIONS).filter(
        ({ option }) => option === name,
      ))
        faults.tell({ ...unknown, where: file.path });
  }
  if (permissions === undefined) return undefined;
  if (!isRecord(permissions)) {
    const fault = { problem: 'permissions is no object', fix: '{ "rules": […] }' };
    faults.tell({ where: file.path, option: 'permissions', ...fault });
    return undefined;
  }
  const { mode, rules, ...unheardParts } = permissions;
  for (const name of Object.keys(unheardParts))
    warnAuthor(unheard(`permissions.${name}`, file), options.logger);
  const heard = { ...(mode === undefined ? {} : { mode }), ...(rules === undefined ? {} : { rules }) };
  return heard as PermissionsOptions;
}

function unheard(name: string, { path }: ConfigFile): { where: string; problem: string; fix: string } {
  return {
    where: path,
    problem: `'${name}' of a file that the folder brings with it is not heard`,
    fix: 'configFile, for a file that you trust',
  };
}
