import { type AuthorFault, ToolDeclarationError } from '../../errors/author-fault.js';
import { checkNumbers } from '../../errors/check-numbers.js';
import type { ToolwrightModuleOptions, ToolwrightOptionsFactory } from './module-options.js';

const WHERE = 'the options of ToolwrightModule';

/**
 * The options, which JavaScript and factories may have got wrong.
 *
 * @throws ToolDeclarationError with what is wrong; Nest tells of it while the application is created.
 */
export function checkOptions(given: unknown): ToolwrightModuleOptions {
  if (typeof given !== 'object' || given === null)
    throw new ToolDeclarationError([
      {
        where: WHERE,
        problem: `they are ${String(given)}`,
        causes: ['the useFactory of forRootAsync, or its createToolwrightOptions(), returns nothing'],
        fix: 'useFactory: () => ({ provider, model }), or forRoot({ provider, model })',
      },
    ]);
  const { tools, data }: Readonly<Record<string, unknown>> = { ...given };
  const faults: AuthorFault[] = [];
  if (tools !== undefined && !Array.isArray(tools))
    faults.push({ where: WHERE, problem: 'their tools are no array', fix: 'tools: [calculateTool, …]' });
  if (data !== undefined && typeof data !== 'function')
    faults.push({
      where: WHERE,
      problem: 'their data is no function',
      fix: 'data: (request) => ({ userId: request.user.id })',
    });
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  checkNumbers(WHERE, given, { shutdownTimeoutMs: { min: 0, allowsInfinity: true } });
  return given;
}

/** What a class given as `useClass` or `useExisting` makes. */
export function createdOptions(factory: Partial<ToolwrightOptionsFactory>): unknown {
  if (typeof factory?.createToolwrightOptions === 'function') return factory.createToolwrightOptions();
  const fault: AuthorFault = {
    where: 'ToolwrightModule.forRootAsync',
    problem: `${factory?.constructor.name ?? 'what was injected'} has no method createToolwrightOptions`,
    fix: 'a class with createToolwrightOptions() { return { provider, model }; }',
  };
  throw new ToolDeclarationError([fault]);
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
