import type { DependencyContainer, Lifecycle, InjectionToken as TsyringeToken } from 'tsyringe';
import type { ClassType, ToolsetScope } from '../../../core/contract/declaration.js';
import type { InjectionToken, InstanceResolver } from '../../../core/contract/ports.js';
import type { ToolContext } from '../../../core/contract/tool-context.js';
import type { AuthorFault, UnplacedFault } from '../../../core/errors/author-fault.js';
import { errorMessage } from '../../../core/kernel/error-message.js';
import { isObject } from '../../../core/kernel/json.js';
import { loadPackage } from '../../../core/kernel/optional-package.cjs';
import { readDescription } from '../../../core/metadata/class-record.js';
import { NO_METADATA } from '../../schema/value-type.js';

/** A class and the lifetime of its instances. */
interface ProvidedClass {
  readonly class: ClassType;
  readonly lifetime: ToolsetScope;
}

/** The result of inspecting the dependencies of a class. */
interface DependencyReport {
  readonly faults: readonly UnplacedFault[];
  /** Tokens with a class as provider, and that class. */
  readonly providers: ReadonlyMap<TsyringeToken, ProvidedClass>;
}

interface Visit extends ProvidedClass {
  /** From the toolset down to this class. */
  readonly path: readonly string[];
  /** The nearest class on the path, including this class, that lives as long as the container. */
  readonly singleton?: string | undefined;
}

/**
 * Inspects the dependencies of a class without creating instances. Finds missing providers, and singletons that would
 * keep a scoped dependency permanently.
 */
function inspectDependencies(container: DependencyContainer, root: ProvidedClass): DependencyReport {
  // By problem: two paths to one mistake are one fault.
  const faults = new Map<string, UnplacedFault>();
  const note = (fault: UnplacedFault): unknown => faults.set(fault.problem, fault);
  const providers = new Map<TsyringeToken, ProvidedClass>();
  const visited = new Set<ClassType>();
  const visitedBelowSingleton = new Set<ClassType>();
  const queue: Visit[] = [];
  const enter = ({ class: target, lifetime }: ProvidedClass, from?: Visit): void => {
    const singleton = lifetime === 'singleton' ? target.name : from?.singleton;
    queue.push({ class: target, lifetime, path: [...(from?.path ?? []), target.name], singleton });
  };
  enter(root);
  for (const visit of queue) {
    const { class: target, singleton, path } = visit;
    // A class is inspected again below a singleton: only there can it be captured.
    const done = singleton === undefined ? visited : visitedBelowSingleton;
    if (done.has(target)) continue;
    done.add(target);
    const parameters = constructorParameters(target);
    if (parameters === 'unknown') {
      const unknowns = Array.from({ length: target.length }, () => '?').join(', ');
      note({
        problem: `${target.name}(${unknowns}) needs arguments, but their types are unknown`,
        causes: ['the class has no decorator', NO_METADATA],
        fix: `@injectable() before class ${target.name}, @inject(…) on every parameter, or a provider for it in the container`,
      });
      continue;
    }
    for (const [index, parameter] of parameters.entries()) {
      const asked: unknown = parameter.token;
      // `delay(() => Service)` wraps the class until it is loaded; at discovery it is loaded.
      const isDelayed = isObject(asked) && 'wrap' in asked;
      const token: unknown = isDelayed && typeof asked.wrap === 'function' ? asked.wrap() : asked;
      const found = providersOf(container, token);
      if (found.length === 0 && parameter.isOptional !== true)
        note(missingProvider(visit, parameters, index));
      for (const provider of found) {
        if (provider === 'opaque') continue;
        providers.set(token as TsyringeToken, provider);
        enter(provider, visit);
        if (provider.lifetime !== 'scoped' || singleton === undefined) continue;
        const scoped = nameOf(token);
        // The singleton would keep the scoped instance of the first call permanently.
        note({
          problem: `the singleton ${singleton} would hold the scoped ${scoped} of its first call forever (${[...path, scoped].join(' → ')})`,
          fix: `@Toolset({ scope: 'scoped' }) or a shorter lifetime for ${singleton}, or resolve it in the call: context.resolve(${scoped})`,
        });
      }
    }
  }
  return { faults: [...faults.values()], providers };
}

/** The dependency of a constructor parameter. */
interface ConstructorParameter {
  readonly token: TsyringeToken | undefined;
  readonly isOptional?: boolean;
}

/** tsyringe's own metadata key for `@inject` and similar decorators. */
const TOKENS_KEY = 'injectionTokens';

type TokenDescriptor = ConstructorParameter & { readonly token: TsyringeToken };

/**
 * The dependencies of a class's constructor; `unknown` if it has parameters without a description. The classes of the
 * generated file win over metadata, because it also contains types hidden by `import type` and interfaces. They are
 * stored where tsyringe reads them. The class is also marked as injectable: tsyringe refuses classes without its
 * `injectable()`, and our decorators only record.
 */
function constructorParameters(target: ClassType): readonly ConstructorParameter[] | 'unknown' {
  const tokens: Readonly<Record<number, TsyringeToken | TokenDescriptor>> =
    Reflect.getOwnMetadata(TOKENS_KEY, target) ?? {};
  const emitted: readonly unknown[] | undefined = Reflect.getMetadata('design:paramtypes', target);
  const described = readDescription(target)?.dependencies;
  let types = emitted;
  if (described !== undefined && (emitted === undefined || emitted.length === described.length)) {
    types = described.map((one, index) => one ?? emitted?.[index]);
    Reflect.defineMetadata('design:paramtypes', types, target);
  }
  const parameters: ConstructorParameter[] = [];
  for (let index = 0; index < (types?.length ?? target.length); index += 1) {
    // Without metadata, as under esbuild, `@inject` on every parameter is sufficient.
    if (types === undefined && !Object.hasOwn(tokens, index)) return 'unknown';
    const asked = tokens[index] ?? types?.[index];
    const isDescriptor = isObject(asked) && 'token' in asked;
    parameters.push(
      isDescriptor ? (asked as TokenDescriptor) : { token: asked as TsyringeToken | undefined },
    );
  }
  loadTsyringe().injectable()(target as new () => object);
  return parameters;
}

/** The fault of a parameter without a provider; the `?` marks it. */
function missingProvider(
  { class: target, path }: Visit,
  parameters: readonly ConstructorParameter[],
  index: number,
): UnplacedFault {
  const token = parameters[index]?.token;
  const names = parameters.map((parameter) => nameOf(parameter.token));
  const signature = names.with(index, '?').join(', ');
  const via = path.length > 1 ? ` (${path.join(' → ')})` : '';
  const problem = `there is no provider for parameter #${index} (${nameOf(token)}) of ${target.name}(${signature})${via}`;
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

/** A token as an author would write it. */
function nameOf(token: unknown): string {
  if (typeof token === 'function') return token.name;
  return typeof token === 'string' ? `'${token}'` : String(token);
}

/** A container's provider of a token; aliases are followed. `opaque`: a value or a factory, which cannot be inspected. */
type Provider = ProvidedClass | 'opaque';

/** The part of tsyringe's container that its types hide: there is no public way to read a provider. */
interface Registration {
  readonly provider: { readonly useClass?: ClassType; readonly useToken?: TsyringeToken };
  readonly options: { readonly lifecycle: Lifecycle };
}
interface Internals {
  readonly parent?: Internals;
  readonly _registry?: { has(token: unknown): boolean; getAll(token: unknown): readonly Registration[] };
}

/** Built-in types that appear in metadata if the real type is lost or cannot be injected by type. */
const LOST_TYPES: readonly unknown[] = [Object, Array, Function, Promise, String, Number, Boolean];

/** Whether metadata lost the type of a parameter, so that it cannot be injected. */
function isLostType(token: unknown): boolean {
  return token === undefined || LOST_TYPES.includes(token);
}

/** The providers of a token, including classes that were never registered; empty: it is missing. */
function providersOf(container: DependencyContainer, token: unknown): readonly Provider[] {
  const registrations = registrationsOf(container as unknown as Internals, token);
  if (registrations.length > 0)
    return registrations.flatMap((registration) => follow(container, registration));
  if (typeof token !== 'function' || isLostType(token)) return [];
  return [{ class: token as ClassType, lifetime: 'transient' }];
}

/** Whether a token is registered, here or in a parent. */
function isRegistered(container: DependencyContainer, token: unknown): boolean {
  return registrationsOf(container as unknown as Internals, token).length > 0;
}

/** tsyringe uses the nearest container that has any registration of the token. */
function registrationsOf(container: Internals | undefined, token: unknown): readonly Registration[] {
  if (container === undefined) return [];
  return container._registry?.has(token)
    ? container._registry.getAll(token)
    : registrationsOf(container.parent, token);
}

/** tsyringe refuses cycles of aliases when they are registered, so following them ends. */
function follow(container: DependencyContainer, { provider, options }: Registration): readonly Provider[] {
  const { Lifecycle } = loadTsyringe();
  let lifetime: ToolsetScope = 'transient';
  if (options.lifecycle === Lifecycle.Singleton) lifetime = 'singleton';
  // An instance per resolution ends with the call.
  else if (options.lifecycle === Lifecycle.ContainerScoped) lifetime = 'scoped';
  if (provider.useClass !== undefined) return [{ class: provider.useClass, lifetime }];
  if (provider.useToken === undefined) return ['opaque'];
  const targets = providersOf(container, provider.useToken);
  // A singleton alias keeps the instance that it resolved to, whatever its lifetime.
  if (lifetime !== 'singleton') return targets;
  return targets.map((target) => (target === 'opaque' ? target : { ...target, lifetime }));
}

/** tsyringe's name of a lifetime. */
function lifecycleOf(lifetime: ToolsetScope): Lifecycle {
  const { Lifecycle } = loadTsyringe();
  if (lifetime === 'singleton') return Lifecycle.Singleton;
  return lifetime === 'scoped' ? Lifecycle.ContainerScoped : Lifecycle.Transient;
}

/** The source of the instance that handles a call. */
export type InstanceSource =
  | { readonly kind: 'always'; readonly instance: object }
  | { readonly kind: 'per-call'; readonly open: (context: ToolContext) => object };

/** A toolset class with its lifetime in `@Toolset`. */
interface HostedToolset {
  readonly class: ClassType;
  readonly scope?: ToolsetScope;
}

/** The interface between discovery and containers. */
interface ToolsetHost {
  readonly resolver: InstanceResolver;
  /** Whether the class is registered, or marked for injection. */
  knows(target: ClassType): boolean;
  /** The problems that injecting a toolset would have; creates nothing. */
  inspect(toolset: HostedToolset): readonly AuthorFault[];
  /** Registers the toolset, and creates it if it lives as long as the container. Throws errors of its constructor. */
  open(toolset: HostedToolset): InstanceSource;
}

/** Loads tsyringe at the first discovery. */
function loadTsyringe(): typeof import('tsyringe') {
  try {
    return loadPackage('tsyringe') as typeof import('tsyringe');
  } catch (cause) {
    throw new Error(
      'tsyringe, which injects the arguments of constructors, cannot be loaded: npm install tsyringe',
      { cause },
    );
  }
}

/**
 * The host for a container; default: tsyringe's global container, or plain constructors if tsyringe is not installed.
 */
export function toolsetHost(container?: InstanceResolver): ToolsetHost {
  if (container === undefined) {
    try {
      return tsyringeHost(loadTsyringe().container);
    } catch (error) {
      return plainHost(error);
    }
  }
  const isTsyringe =
    'createChildContainer' in container && typeof container.createChildContainer === 'function';
  return isTsyringe ? tsyringeHost(container as DependencyContainer) : portHost(container);
}

function portHost(resolver: InstanceResolver): ToolsetHost {
  return {
    resolver,
    knows: () => false,
    inspect: () => [],
    open: ({ class: toolset, scope = 'singleton' }) =>
      scope === 'singleton' ? always(resolver.resolve(toolset as Token)) : perCall(toolset),
  };
}

/** Creates toolsets whose constructors have no parameters. */
function plainHost(reason: unknown): ToolsetHost {
  const resolve = <Instance>(token: InjectionToken<Instance>) => new (token as new () => Instance)();
  return {
    ...portHost({ resolve }),
    inspect: ({ class: { name, length } }) =>
      length === 0
        ? []
        : [
            {
              where: name,
              problem: `its constructor takes ${length === 1 ? 'an argument' : `${length} arguments`}: ${errorMessage(reason)}`,
              fix: "npm install tsyringe; in a bundle, import 'toolwright/tsyringe'; or discoverTools({ container: … })",
            },
          ],
  };
}

function tsyringeHost(container: DependencyContainer): ToolsetHost {
  return {
    resolver: tsyringeResolver(container),
    knows: (target) => isRegistered(container, target),
    inspect(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      if (lifetime === 'opaque') return [];
      const { faults } = inspectDependencies(container, { class: toolset.class, lifetime });
      return faults.map((fault) => ({ where: toolset.class.name, ...fault }));
    },
    open(toolset) {
      const lifetime = lifetimeOf(container, toolset);
      const token = toolset.class as Token;
      if (lifetime === 'opaque') return always(container.resolve(token));
      if (!isRegistered(container, token)) {
        container.register(token, { useClass: token }, { lifecycle: lifecycleOf(lifetime) });
      }
      if (lifetime !== 'singleton') return perCall(toolset.class);
      settleSingletons(container, { class: toolset.class, lifetime });
      return always(container.resolve(token));
    },
  };
}

/** The lifetime in `@Toolset`, otherwise the container's, otherwise a singleton. */
function lifetimeOf(
  container: DependencyContainer,
  { class: toolset, scope }: HostedToolset,
): ToolsetScope | 'opaque' {
  if (!isRegistered(container, toolset)) return scope ?? 'singleton';
  const [provider = 'opaque'] = providersOf(container, toolset);
  return provider === 'opaque' ? provider : (scope ?? provider.lifetime);
}

function perCall(toolset: ClassType): InstanceSource {
  const token = toolset as Token;
  return { kind: 'per-call', open: (context) => context.resolve(token) };
}

function always(instance: object): InstanceSource {
  return { kind: 'always', instance };
}

/** Containers' types require a callable constructor; a toolset is one. */
type Token = new () => object;

/** An `InstanceResolver` for a tsyringe container. */
function tsyringeResolver(container: DependencyContainer): InstanceResolver {
  const settled = new Set<unknown>();
  const settle = (token: TsyringeToken): void => {
    if (settled.has(token)) return;
    settled.add(token);
    for (const provider of providersOf(container, token)) {
      if (provider === 'opaque') continue;
      if (provider.lifetime === 'singleton') container.resolve(token);
      else settleSingletons(container, provider);
    }
  };
  return {
    resolve: <Instance>(token: InjectionToken<Instance>) =>
      container.resolve<Instance>(token as TsyringeToken<Instance>),
    createScope() {
      const child = container.createChildContainer();
      return {
        resolve<Instance>(token: InjectionToken<Instance>) {
          settle(token as TsyringeToken);
          return child.resolve<Instance>(token as TsyringeToken<Instance>);
        },
        dispose: async () => {
          await child.dispose();
        },
      };
    },
  };
}

/**
 * Creates the singletons that a class depends on, in the container that owns them. tsyringe would create them in the
 * first child container that needs them: they would keep that call's scoped instances, and be disposed with it.
 */
function settleSingletons(container: DependencyContainer, root: ProvidedClass): void {
  const { providers } = inspectDependencies(container, root);
  for (const [token, { lifetime }] of providers) if (lifetime === 'singleton') container.resolve(token);
}

/** A token and its replacement. */
export type Override = readonly [token: unknown, value: unknown];

/**
 * A child of the global container in which a class receives replacements for some of its dependencies. Every class
 * between them is registered again: an existing instance would have the real dependencies, and a new instance
 * elsewhere would leak the replacements.
 */
export function isolatedContainer(toolset: ClassType, overrides: Iterable<Override>): InstanceResolver {
  const child = loadTsyringe().container.createChildContainer();
  for (const [token, value] of overrides) child.registerInstance(token as TsyringeToken, value);
  const { providers } = inspectDependencies(child, { class: toolset, lifetime: 'transient' });
  for (const [token, provider] of providers) register(child, token, provider);
  // A class that was discovered before has its own instance elsewhere.
  if (isRegistered(child, toolset)) {
    const lifetime = lifetimeOf(child, { class: toolset });
    register(child, toolset as Token, {
      class: toolset,
      lifetime: lifetime === 'opaque' ? 'singleton' : lifetime,
    });
  }
  return child;
}

function register(
  child: DependencyContainer,
  token: TsyringeToken,
  { class: target, lifetime }: ProvidedClass,
): void {
  const useClass = target as new () => object;
  child.register(token as TsyringeToken<object>, { useClass }, { lifecycle: lifecycleOf(lifetime) });
}
