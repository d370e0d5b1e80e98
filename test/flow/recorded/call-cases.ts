import { type Invocation, type RegisteredTool, type ToolDefinition, ToolRegistry } from 'toolwright';
import { withoutTimes } from '../../setup/call-records.js';
import { variantsOf } from './argument-variants.js';
import { type RecordedCase, written } from './case.js';
import { declaredTools } from './declared-tools.js';
import { definedTools } from './defined-tools.js';
import type { SampledTool } from './sampled-tool.js';
import { Seeded } from './seeded.js';

const VARIANTS = 32;

/** The definitions of all sampled tools, and calls of each with valid and invalid arguments. */
export function callCases(): RecordedCase[] {
  return [...declaredTools(), ...definedTools()].flatMap((sampled) => [
    definitionOf(sampled),
    ...callsOf(sampled),
  ]);
}

function definitionOf({ tool, name }: SampledTool): RecordedCase {
  return {
    name: `definition of ${name}`,
    run: () => {
      const registry = new ToolRegistry().register(tool);
      const [offered] = registry.toProviderDefs();
      const own = registry.tools().map((known) => {
        const {
          parameters,
          ignoresContext: _internal,
          ...others
        } = known as ToolDefinition & object & { ignoresContext?: boolean };
        const facts = Object.entries(others).filter(([, value]) => typeof value !== 'function');
        const isSame = written(parameters) === written(offered?.function.parameters);
        return Object.fromEntries(isSame ? facts : [...facts, ['parameters', parameters]]);
      });
      return [offered, own];
    },
  };
}

function callsOf({ tool, name, right }: SampledTool): RecordedCase[] {
  return variantsOf(right, new Seeded(name), VARIANTS).map((args, index) => ({
    name: `call ${index + 1} of ${name}`,
    run: () => callOnce(tool, args),
  }));
}

async function callOnce(tool: RegisteredTool, args: unknown): Promise<unknown> {
  const registry = new ToolRegistry().register(tool);
  const [name = ''] = registry.list();
  const invocation = await registry.invoke({ id: 'call_7', name, arguments: args }, {});
  const { content } = await registry.call({ id: 'call_7', name, arguments: args });
  return {
    sent: args,
    ...outcomeOf(invocation),
    ...(content === invocation.result.forLLM ? {} : { content }),
  };
}

/** The parts of an invocation to compare, without duplicates. */
export function outcomeOf({ status, result, record, ...others }: Invocation): object {
  const {
    rawArguments: _raw,
    result: _result,
    repairs,
    removed,
    attempts: _attempts,
    ...facts
  } = withoutTimes(record);
  return {
    status,
    record: {
      ...facts,
      ...(repairs.length > 0 ? { repairs } : {}),
      ...(removed.length > 0 ? { removed } : {}),
    },
    result: { ...result },
    ...others,
  };
}
