import type { DependencyContainer, InjectionToken } from 'tsyringe';
import type { ClassType } from '../../contract/declaration.js';
import type { AuthorFault } from '../../errors/author-fault.js';
import { readDescription } from '../../metadata/class-record.js';
import { loadTsyringe } from './load-tsyringe.cjs';
import { isLostType, type ProviderLifetime, providersOf } from './providers.js';

/** A class and how long its instances live. */
export interface ProvidedClass {
  readonly class: ClassType;
  readonly lifetime: ProviderLifetime;
}

/** What a walk over the dependencies of a class found. */
interface DependencyReport {
  readonly faults: readonly DependencyFault[];
  /** Tokens with a class behind them, and what it is. */
  readonly providers: ReadonlyMap<InjectionToken, ProvidedClass>;
}

interface Visit extends ProvidedClass {
  /** From the toolset down to this class. */
  readonly path: readonly string[];
  /** The nearest class on the path, this one included, that lives as long as the container. */
  readonly singleton?: string;
}

/**
 * Walks what a class depends on without creating anything, and finds what would fail or go wrong later:
 * missing providers, and singletons that would keep a scoped dependency for ever.
 */
export function inspectDependencies(container: DependencyContainer, root: ProvidedClass): DependencyReport {
  const findings: Findings = { faults: new Map(), providers: new Map(), queue: [] };
  const visited = new Set<ClassType>();
  const visitedBelowSingleton = new Set<ClassType>();
  findings.queue.push(visitOf(root));
  for (let visit = findings.queue.shift(); visit !== undefined; visit = findings.queue.shift()) {
    // A class is looked at again below a singleton: only there can it be captured.
    const done = visit.singleton === undefined ? visited : visitedBelowSingleton;
    if (done.has(visit.class)) continue;
    done.add(visit.class);
    inspectClass(container, { visit, findings });
  }
  return { faults: [...findings.faults.values()], providers: findings.providers };
}

interface Findings {
  /** By problem: two paths to one mistake are one fault. */
  readonly faults: Map<string, DependencyFault>;
  readonly providers: Map<InjectionToken, ProvidedClass>;
  readonly queue: Visit[];
}

function inspectClass(
  container: DependencyContainer,
  of: { readonly visit: Visit; readonly findings: Findings },
): void {
  const { visit, findings } = of;
  const parameters = constructorParameters(visit.class);
  if (parameters === 'unknown') {
    note(findings, unknownConstructor(visit.class));
    return;
  }
  parameters.forEach((parameter, index) => {
    const isMissing = !inspectParameter(container, { ...of, parameter });
    if (isMissing)
      note(findings, missingProvider({ class: visit.class, parameters, index, path: visit.path }));
  });
}

/** Follows one parameter; `false` where nothing provides it. */
function inspectParameter(
  container: DependencyContainer,
  of: { readonly visit: Visit; readonly parameter: ConstructorParameter; readonly findings: Findings },
): boolean {
  const { visit, parameter, findings } = of;
  const token = undelay(parameter.token);
  const providers = providersOf(container, token);
  for (const provider of providers) {
    if (provider.kind === 'opaque') continue;
    findings.providers.set(token as InjectionToken, provider);
    findings.queue.push(visitOf(provider, visit));
    if (provider.lifetime !== 'scoped' || visit.singleton === undefined) continue;
    note(findings, capturedScope({ singleton: visit.singleton, scoped: nameOf(token), path: visit.path }));
  }
  return providers.length > 0 || parameter.isOptional;
}

function visitOf({ class: target, lifetime }: ProvidedClass, from?: Visit): Visit {
  const singleton = lifetime === 'singleton' ? target.name : from?.singleton;
  return { class: target, lifetime, path: [...(from?.path ?? []), target.name], singleton };
}

function note(findings: Findings, fault: DependencyFault): void {
  findings.faults.set(fault.problem, fault);
}

/** `delay(() => Service)` wraps the class until it is loaded; by discovery it is. */
function undelay(token: unknown): unknown {
  const isDelayed =
    typeof token === 'object' && token !== null && 'wrap' in token && typeof token.wrap === 'function';
  return isDelayed ? (token as { wrap(): unknown }).wrap() : token;
}

/** What one constructor parameter asks the container for. */
interface ConstructorParameter {
  readonly token: InjectionToken | undefined;
  readonly isOptional: boolean;
  /** `@injectAll`: every provider of the token. */
  readonly isMultiple: boolean;
}

/** The parameters, or `unknown` where the class needs arguments that nothing describes. */
type ConstructorFacts = readonly ConstructorParameter[] | 'unknown';

/** tsyringe's own key for what `@inject` and its siblings said. */
const TOKENS_KEY = 'injectionTokens';

interface TokenDescriptor {
  readonly token: InjectionToken;
  readonly isOptional?: boolean;
  readonly multiple?: boolean;
}

/**
 * What a class's constructor asks for. Where decorator metadata exists, the class is marked injectable on
 * the way: tsyringe refuses classes that its `injectable()` never saw, and a decorator of ours must not
 * do more than record.
 */
function constructorParameters(target: ClassType): ConstructorFacts {
  const tokens: Readonly<Record<number, InjectionToken | TokenDescriptor>> =
    Reflect.getOwnMetadata(TOKENS_KEY, target) ?? {};
  const designTypes = describedTypes(target) ?? designTypesFrom(tokens, target.length);
  if (designTypes === undefined) return 'unknown';
  const parameters = designTypes.map((designType, index) => readParameter(tokens[index] ?? designType));
  loadTsyringe().injectable()(target as new () => object);
  return parameters;
}

/**
 * What metadata and the generated file say of a constructor; where both do, the classes of the latter, which
 * `import type` and interfaces cannot hide. It is kept where tsyringe looks for it.
 */
function describedTypes(target: ClassType): readonly unknown[] | undefined {
  const emitted: readonly unknown[] | undefined = Reflect.getMetadata('design:paramtypes', target);
  const described = readDescription(target)?.dependencies;
  if (described === undefined || (emitted !== undefined && emitted.length !== described.length))
    return emitted;
  const types = described.map((one, index) => one ?? emitted?.[index]);
  Reflect.defineMetadata('design:paramtypes', types, target);
  return types;
}

/** Without metadata, as under esbuild, `@inject` on every parameter says as much. */
function designTypesFrom(tokens: object, count: number): readonly unknown[] | undefined {
  const parameters = Array.from({ length: count }, (_, index) => index);
  return parameters.every((index) => Object.hasOwn(tokens, index))
    ? parameters.map(() => undefined)
    : undefined;
}

function readParameter(asked: unknown): ConstructorParameter {
  if (!isDescriptor(asked)) {
    return { token: asked as InjectionToken | undefined, isOptional: false, isMultiple: false };
  }
  return { token: asked.token, isOptional: asked.isOptional ?? false, isMultiple: asked.multiple ?? false };
}

function isDescriptor(asked: unknown): asked is TokenDescriptor {
  return typeof asked === 'object' && asked !== null && 'token' in asked;
}

/** Something wrong in what a class depends on. */
type DependencyFault = Omit<AuthorFault, 'where' | 'parameter'>;

/** A class needs arguments, and no metadata says which. */
function unknownConstructor(target: ClassType): DependencyFault {
  const unknowns = Array.from({ length: target.length }, () => '?').join(', ');
  return {
    problem: `${target.name}(${unknowns}) needs arguments, but nothing says which`,
    causes: [
      'the class has no decorator',
      'the build tool emits no decorator metadata (esbuild, tsx): run `npx toolwright generate` and import the file that it writes',
    ],
    fix: `@injectable() before class ${target.name}, @inject(…) on every parameter, or a provider for it in the container`,
  };
}

/** Nothing provides a constructor's parameter; the `?` shows which. */
function missingProvider(of: {
  readonly class: ClassType;
  readonly parameters: readonly ConstructorParameter[];
  readonly index: number;
  readonly path: readonly string[];
}): DependencyFault {
  const token = of.parameters[of.index]?.token;
  const signature = of.parameters.map((parameter, index) =>
    index === of.index ? '?' : nameOf(parameter.token),
  );
  const via = of.path.length > 1 ? ` (${of.path.join(' → ')})` : '';
  const problem = `nothing provides parameter #${of.index} (${nameOf(token)}) of ${of.class.name}(${signature.join(', ')})${via}`;
  if (!isLostType(token)) {
    return {
      problem,
      causes: ['the token was never registered in this container'],
      fix: `container.register(${nameOf(token)}, …) before discoverTools`,
    };
  }
  return {
    problem,
    causes: [
      'the type is an interface, a union or a primitive',
      'it is imported with `import type`',
      'two files import each other',
    ],
    fix: '@inject(TOKEN) at the parameter and container.register(TOKEN, …), or @inject(delay(() => Class)) for a cycle',
  };
}

/** A singleton would keep the scoped instance of the first call for ever. */
function capturedScope(of: {
  readonly singleton: string;
  readonly scoped: string;
  readonly path: readonly string[];
}): DependencyFault {
  const path = [...of.path, of.scoped].join(' → ');
  return {
    problem: `the singleton ${of.singleton} would keep the scoped ${of.scoped} of its first call for ever (${path})`,
    fix: `@Toolset({ scope: 'scoped' }) or a shorter lifetime for ${of.singleton}, or resolve it in the call: context.resolve(${of.scoped})`,
  };
}

/** A token as an author would write it. */
function nameOf(token: unknown): string {
  if (typeof token === 'function') return token.name;
  return typeof token === 'string' ? `'${token}'` : String(token);
}
