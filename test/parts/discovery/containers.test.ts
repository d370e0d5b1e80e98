import type { ClassType } from 'toolwright';
import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import {
  type DependencyContainer,
  delay,
  container as globalContainer,
  inject,
  injectAll,
  injectable,
  Lifecycle,
  scoped,
  singleton,
} from 'tsyringe';
import { isolatedContainer, toolsetHost } from '../../../src/tools/discovery/containers/toolset-host.js';

const fresh = (): DependencyContainer => globalContainer.createChildContainer();
const problems = (container: DependencyContainer, toolset: ClassType, scope?: 'scoped') =>
  toolsetHost(container)
    .inspect({ class: toolset, scope })
    .map(({ problem }) => problem);

describe('inspecting the dependencies of a toolset', () => {
  test('reports nothing if classes, tokens, factories, values and lists of a token are all provided', () => {
    @injectable()
    class Deep {}
    @injectable()
    class Service {
      constructor(readonly deep: Deep) {}
    }
    @injectable()
    class Tools {
      constructor(
        readonly service: Service,
        @inject('url') readonly url: string,
        @inject('clock') readonly clock: unknown,
        @injectAll('plugin') readonly plugins: unknown[],
      ) {}
    }
    const container = fresh();
    container.register('url', { useValue: 'http://localhost' });
    container.register('clock', { useFactory: () => 1 });
    container.register('plugin', { useClass: Deep });
    expect(problems(container, Tools)).toEqual([]);
    const source = toolsetHost(container).open({ class: Tools });
    const instance = (source.kind === 'always' ? source.instance : source.open({} as never)) as Tools;
    expect(instance.service.deep).toBeInstanceOf(Deep);
    expect([instance.url, instance.clock, instance.plugins.length]).toEqual(['http://localhost', 1, 1]);
  });

  test('shows the constructor with a ? for a parameter without a provider', () => {
    @injectable()
    class Service {}
    @injectable()
    class Tools {
      constructor(
        readonly service: Service,
        @inject('database') readonly database: unknown,
      ) {}
    }
    expect(problems(fresh(), Tools)).toEqual([
      "there is no provider for parameter #1 ('database') of Tools(Service, ?)",
    ]);
  });

  test('reports a missing provider of a nested dependency with its path', () => {
    @injectable()
    class Store {
      constructor(@inject('database') readonly database: unknown) {}
    }
    @injectable()
    class Service {
      constructor(readonly store: Store) {}
    }
    @injectable()
    class Tools {
      constructor(readonly service: Service) {}
    }
    expect(problems(fresh(), Tools)).toEqual([
      "there is no provider for parameter #0 ('database') of Store(?) (Tools → Service → Store)",
    ]);
  });

  test('reports a type that metadata does not preserve, instead of injecting an empty object', () => {
    interface Settings {
      readonly url: string;
    }
    @injectable()
    class Tools {
      constructor(readonly settings: Settings) {}
    }
    const [fault] = toolsetHost(fresh()).inspect({ class: Tools });
    expect(fault?.problem).toBe('there is no provider for parameter #0 (Object) of Tools(?)');
    expect(fault?.causes).toContain('the type is an interface, a union or a primitive');
    expect(fault?.fix).toContain('@inject(TOKEN)');
  });

  test('reports unknown constructor parameters of a class without metadata', () => {
    class Plain {
      constructor(readonly url: string) {}
    }
    expect(problems(fresh(), Plain)).toEqual(['Plain(?) needs arguments, but their types are unknown']);
  });

  test('accepts a circular dependency with delay', () => {
    @injectable()
    class Left {
      constructor(@inject(delay(() => Right)) readonly right: object) {}
    }
    @injectable()
    class Right {
      constructor(readonly left: Left) {}
    }
    expect(problems(fresh(), Left)).toEqual([]);
  });

  test('accepts an optional dependency without a provider', () => {
    @injectable()
    class Tools {
      constructor(@inject('maybe', { isOptional: true }) readonly maybe: unknown) {}
    }
    expect(problems(fresh(), Tools)).toEqual([]);
  });
});

describe('a singleton that depends on a scoped class', () => {
  @scoped(Lifecycle.ContainerScoped)
  class RequestState {}
  @injectable()
  class Middle {
    constructor(readonly state: RequestState) {}
  }
  @injectable()
  class Tools {
    constructor(readonly middle: Middle) {}
  }

  test('is refused with the path to it', () => {
    expect(problems(fresh(), Tools)).toEqual([
      'the singleton Tools would hold the scoped RequestState of its first call forever (Tools → Middle → RequestState)',
    ]);
  });

  test('is accepted if the toolset itself is scoped', () => {
    expect(problems(fresh(), Tools, 'scoped')).toEqual([]);
  });

  test('is also found below a scoped toolset', () => {
    @singleton()
    class Cache {
      constructor(readonly middle: Middle) {}
    }
    @injectable()
    class ScopedTools {
      constructor(readonly cache: Cache) {}
    }
    expect(problems(fresh(), ScopedTools, 'scoped')).toEqual([
      'the singleton Cache would hold the scoped RequestState of its first call forever (ScopedTools → Cache → Middle → RequestState)',
    ]);
  });
});

describe('the scope of a call', () => {
  test('has its own scoped instances, and does not dispose the singletons of the container', async () => {
    const disposed: string[] = [];
    @singleton()
    class Pool {
      dispose() {
        disposed.push('pool');
      }
    }
    @scoped(Lifecycle.ContainerScoped)
    class Session {
      constructor(readonly pool: Pool) {}
      dispose() {
        disposed.push('session');
      }
    }
    const container = fresh();
    const { resolver } = toolsetHost(container);
    const one = resolver.createScope?.();
    const other = resolver.createScope?.();
    const first = one?.resolve(Session);
    expect(one?.resolve(Session)).toBe(first);
    expect(other?.resolve(Session)).not.toBe(first);
    expect(other?.resolve(Session)?.pool).toBe(first?.pool);
    await one?.dispose();
    expect(disposed).toEqual(['session']);
  });
});

test('an isolated container injects test doubles, which do not affect the global container', () => {
  @singleton()
  class Mailer {
    readonly isReal: boolean = true;
  }
  @singleton()
  class Service {
    constructor(readonly mailer: Mailer) {}
  }
  @injectable()
  class Tools {
    constructor(readonly service: Service) {}
  }
  const real = globalContainer.resolve(Service);
  const isolated = isolatedContainer(Tools, [[Mailer, { isReal: false }]]);
  expect(isolated.resolve(Tools).service.mailer.isReal).toBe(false);
  expect(globalContainer.resolve(Tools).service).toBe(real);
  expect(globalContainer.resolve(Tools).service.mailer.isReal).toBe(true);
});
