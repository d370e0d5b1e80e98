import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import {
  checkOptions,
  type InvalidOption,
  InvalidOptionsError,
  invalidOptions,
  refuseOptions,
} from '../../errors/invalid-options.js';
import { isRecord } from '../../kernel/is-record.js';
import { ANYTHING, FUNCTION, LIST } from '../../kernel/option-rules.js';
import { optionTable } from '../../kernel/options.js';
import { LOOP_ALIASES } from '../../loop/loop-config.js';
import {
  MODULE_RULES,
  type ToolwrightModuleAsyncOptions,
  type ToolwrightModuleOptions,
  type ToolwrightOptionsFactory,
} from './module-options.js';

const OPTIONS = optionTable<ToolwrightModuleOptions>('ToolwrightModule', MODULE_RULES, {
  ...LOOP_ALIASES,
  toolsets: 'providers: [ShopTools] of the module',
  isGlobal: 'nothing: it is global',
  config: 'its options here: forRoot({ provider, model })',
  signal: 'signal in the options of a run',
});

const ASYNC_OPTIONS = optionTable<ToolwrightModuleAsyncOptions>('ToolwrightModule.forRootAsync', {
  imports: LIST,
  useFactory: FUNCTION,
  inject: LIST,
  useClass: FUNCTION,
  useExisting: ANYTHING,
});

/**
 * The options, which JavaScript and factories may have got wrong.
 *
 * @throws InvalidOptionsError with what is wrong; Nest tells of it while the application is created.
 */
export function checkModuleOptions(given: unknown): ToolwrightModuleOptions {
  if (!isRecord(given)) throw new InvalidOptionsError([noOptions(given)]);
  const faults = invalidOptions(given, OPTIONS);
  const { mayAnswer, owner, scopeOf } = given as ToolwrightModuleOptions;
  const lacks = mayAnswer !== undefined && (owner === undefined || scopeOf === undefined);
  refuseOptions(lacks ? [...faults, ANSWERS_FOR_NOBODY] : faults);
  return given;
}

const ANSWERS_FOR_NOBODY: InvalidOption = {
  where: 'ToolwrightModule',
  option: 'mayAnswer',
  problem:
    'mayAnswer needs owner, which says whose a run is, and scopeOf, which says in what scope it goes on',
  fix: 'owner: (request) => ({ user: request.user.id }), scopeOf: ({ user }) => ({ request: { user } })',
};

function noOptions(given: unknown): InvalidOption {
  return {
    where: OPTIONS.of,
    option: '',
    problem: `its options are ${String(given)}: where a factory makes them, it returns nothing`,
    fix: 'useFactory: () => ({ provider, model }), or forRoot({ provider, model })',
  };
}

/** Where the options come from: exactly one of the ways to make them; given as it is. */
export function checkAsyncOptions(given: ToolwrightModuleAsyncOptions): ToolwrightModuleAsyncOptions {
  checkOptions(given, ASYNC_OPTIONS);
  const ways = [given.useFactory, given.useClass, given.useExisting].filter((way) => way !== undefined);
  refuseOptions(ways.length === 1 ? [] : [ONE_WAY]);
  return given;
}

const ONE_WAY: InvalidOption = {
  where: 'ToolwrightModule.forRootAsync',
  option: 'useFactory',
  problem: 'it needs exactly one of useFactory, useClass and useExisting',
  fix: 'useFactory: (config) => ({ provider, model: config.model }), inject: [Config]',
};

/** What a class given as `useClass` or `useExisting` makes. */
export function createdOptions(factory: Partial<ToolwrightOptionsFactory>): unknown {
  if (typeof factory?.createToolwrightOptions === 'function') return factory.createToolwrightOptions();
  const fault: InvalidOption = {
    where: ASYNC_OPTIONS.of,
    option: 'useClass',
    problem: `${factory?.constructor.name ?? 'what was injected'} has no method createToolwrightOptions`,
    fix: 'a class with createToolwrightOptions() { return { provider, model }; }',
  };
  throw new InvalidOptionsError([fault]);
}

/**
 * The tools of a feature.
 *
 * @throws ToolDeclarationError where they are no list.
 */
export function checkFeature<Tool>(tools: readonly Tool[]): readonly Tool[] {
  if (Array.isArray(tools)) return tools;
  const fault: AuthorFault = {
    where: 'ToolwrightModule.forFeature',
    problem: `it was given ${tools === undefined ? 'undefined' : `a ${typeof tools}`} instead of a list of tools`,
    causes: ['files import each other in a circle, so that what was named is not there yet'],
    fix: 'forFeature([OrderTools, calculateTool])',
  };
  throw new ToolDeclarationError([fault]);
}
