import type { DependencyContainer, InjectionToken } from 'tsyringe';
import type { ClassType } from '../../contract/class-type.js';
import { type ConstructorParameter, constructorParameters } from './constructor-parameters.js';
import { type ProviderLifetime, providersOf } from './tsyringe-registry.js';

/** Something wrong in what a class depends on. */
export interface DependencyFault {
  readonly problem: string;
  readonly causes?: readonly string[];
  readonly fix: string;
}

/** What a walk over the dependencies of a class found. */
export interface DependencyReport {
  readonly faults: readonly DependencyFault[];
  /** Tokens with a provider that lives as long as the container. */
  readonly singletons: readonly InjectionToken[];
  /** Classes met on the way, with how long they live. */
  readonly classes: ReadonlyMap<ClassType, ProviderLifetime>;
}

interface Visit {
  readonly class: ClassType;
  readonly lifetime: ProviderLifetime;
  /** From the toolset down to this class. */
  readonly path: readonly string[];
  /** The nearest ancestor, or this class, that lives as long as the container. */
  readonly singleton?: string;
}

/** Built-in types that appear in metadata where the real type is lost or cannot be injected by type. */
const LOST_TYPES: readonly unknown[] = [Object, Array, Function, Promise, String, Number, Boolean];

/**
 * Walks what a class depends on without creating anything, and finds what would fail or go wrong later:
 * missing providers, and singletons that would keep a scoped dependency for ever.
 */
export function inspectDependencies(
  container: DependencyContainer,
  root: { readonly class: ClassType; readonly lifetime: ProviderLifetime },
): DependencyReport {
  const faults: DependencyFault[] = [];
  const singletons = new Set<InjectionToken>();
  const classes = new Map<ClassType, ProviderLifetime>();
  const seen = new Set<string | ClassType>();
  const queue: Visit[] = [
    { ...root, path: [root.class.name], singleton: nameIf(root.lifetime, root.class.name) },
  ];
  for (let visit = queue.shift(); visit !== undefined; visit = queue.shift()) {
    if (classes.has(visit.class) && (seen.has(visit.class) || visit.singleton === undefined)) continue;
    classes.set(visit.class, visit.lifetime);
    if (visit.singleton !== undefined) seen.add(visit.class);
    const found = inspectClass(container, visit);
    faults.push(...found.faults);
    for (const token of found.singletons) singletons.add(token);
    queue.push(...found.next);
  }
  return { faults: distinct(faults), singletons: [...singletons], classes };
}

interface ClassFindings {
  readonly faults: DependencyFault[];
  readonly singletons: InjectionToken[];
  readonly next: Visit[];
}

function inspectClass(container: DependencyContainer, visit: Visit): ClassFindings {
  const findings: ClassFindings = { faults: [], singletons: [], next: [] };
  const parameters = constructorParameters(visit.class);
  if (parameters === 'unknown') {
    findings.faults.push({
      problem: `${signature(visit.class, 'unknown')} needs ${visit.class.length} arguments, but nothing says which`,
      causes: ['the class has no decorator', 'the build tool emits no decorator metadata (esbuild, tsx)'],
      fix: `@injectable() before class ${visit.class.name}, or register a provider for it in the container`,
    });
    return findings;
  }
  parameters.forEach((parameter, index) => {
    const missing = inspectParameter(container, { visit, parameter, findings });
    if (missing) findings.faults.push(missingProvider(visit, parameters, index));
  });
  return findings;
}

function inspectParameter(
  container: DependencyContainer,
  of: { readonly visit: Visit; readonly parameter: ConstructorParameter; readonly findings: ClassFindings },
): boolean {
  const { visit, findings } = of;
  let token = undelay(of.parameter.token);
  for (const followed = new Set<unknown>(); ; ) {
    const providers = token === undefined ? [] : providersOf(container, token);
    if (providers.length === 0) {
      if (!isInjectableClass(token)) return !of.parameter.isOptional;
      findings.next.push(descend(visit, { class: token, lifetime: 'transient' }));
      return false;
    }
    let alias: InjectionToken | undefined;
    for (const provider of providers) {
      if (provider.kind === 'opaque') continue;
      if (provider.lifetime === 'singleton') findings.singletons.push(token as InjectionToken);
      if (provider.lifetime === 'scoped' && visit.singleton !== undefined) {
        findings.faults.push(captured(visit, nameOf(token)));
      }
      if (provider.kind === 'class') findings.next.push(descend(visit, provider));
      else alias = provider.token;
    }
    if (alias === undefined || followed.has(alias)) return false;
    followed.add(alias);
    token = undelay(alias);
  }
}

function descend(
  visit: Visit,
  to: { readonly class: ClassType; readonly lifetime: ProviderLifetime },
): Visit {
  return {
    class: to.class,
    lifetime: to.lifetime,
    path: [...visit.path, to.class.name],
    singleton: nameIf(to.lifetime, to.class.name) ?? visit.singleton,
  };
}

function missingProvider(
  visit: Visit,
  parameters: readonly ConstructorParameter[],
  index: number,
): DependencyFault {
  const token = parameters[index]?.token;
  const lost = token === undefined || LOST_TYPES.includes(token);
  return {
    problem: `nothing provides parameter #${index} (${nameOf(token)}) of ${signature(visit.class, parameters, index)}${via(visit)}`,
    causes: lost
      ? [
          'the type is an interface, a union or a primitive',
          'it is imported with `import type`',
          'two files import each other',
        ]
      : ['the token was never registered in this container'],
    fix: lost
      ? `@inject(TOKEN) at the parameter and container.register(TOKEN, …), or delay(() => Class) for a cycle`
      : `container.register(${nameOf(token)}, …) before discoverTools`,
  };
}

function captured(visit: Visit, scoped: string): DependencyFault {
  return {
    problem: `the singleton ${visit.singleton} would keep the scoped ${scoped} of its first call for ever (${[...visit.path, scoped].join(' → ')})`,
    fix: `@Toolset({ scope: 'scoped' }) or a shorter lifetime for ${visit.singleton}, or resolve ${scoped} in the call: context.resolve(${scoped})`,
  };
}

function signature(
  target: ClassType,
  parameters: readonly ConstructorParameter[] | 'unknown',
  broken?: number,
): string {
  if (parameters === 'unknown')
    return `${target.name}(${Array.from({ length: target.length }, () => '?').join(', ')})`;
  return `${target.name}(${parameters.map(({ token }, index) => (index === broken ? '?' : nameOf(token))).join(', ')})`;
}

function via({ path }: Visit): string {
  return path.length > 1 ? ` (${path.join(' → ')})` : '';
}

function nameOf(token: unknown): string {
  if (typeof token === 'function') return token.name;
  return typeof token === 'string' ? `'${token}'` : String(token);
}

function nameIf(lifetime: ProviderLifetime, name: string): string | undefined {
  return lifetime === 'singleton' ? name : undefined;
}

/** `delay(() => Service)` wraps the class until it is loaded; by discovery it is. */
function undelay(token: unknown): InjectionToken | undefined {
  const isDelayed =
    typeof token === 'object' && token !== null && 'wrap' in token && typeof token.wrap === 'function';
  return (isDelayed ? (token as { wrap(): InjectionToken }).wrap() : token) as InjectionToken | undefined;
}

function isInjectableClass(token: unknown): token is ClassType {
  return typeof token === 'function' && !LOST_TYPES.includes(token);
}

function distinct(faults: readonly DependencyFault[]): readonly DependencyFault[] {
  return [...new Map(faults.map((fault) => [fault.problem, fault])).values()];
}
