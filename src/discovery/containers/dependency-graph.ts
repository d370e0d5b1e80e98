import type { DependencyContainer, InjectionToken } from 'tsyringe';
import type { ClassType } from '../../contract/declaration.js';
import { type ConstructorParameter, constructorParameters } from './constructor-parameters.js';
import {
  capturedScope,
  DependencyFault,
  missingProvider,
  nameOf,
  unknownConstructor,
} from './dependency-faults.js';
import { type ProviderLifetime, providersOf } from './providers.js';

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
