import { expect, test } from '@jest/globals';
import {
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
  type PipeTransform,
  Scope,
  SetMetadata,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, REQUEST, Reflector } from '@nestjs/core';
import { Tool } from 'toolwright';
import { toolCallOf } from 'toolwright/nestjs';
import { boot } from './boot.js';

class Never implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

const Role = (role: string) => SetMetadata('role', role);

@Injectable()
class RoleGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const role = this.reflector.getAllAndOverride('role', [context.getHandler(), context.getClass()]);
    return role === undefined || toolCallOf(context)?.context.data.role === role;
  }
}

const Age = createParamDecorator(() => 36);

/** A class decorator that puts a proxy around the class, as tracing and caching libraries do. */
// biome-ignore lint/suspicious/noExplicitAny: a constructor of any class
function Wrapped<Target extends new (...args: any[]) => object>(target: Target): Target {
  return new Proxy(target, {});
}

test('decorators on a class apply even if another decorator has put a proxy around it', async () => {
  @UseGuards(Never)
  @Wrapped
  class Guarded {
    @Tool('Work')
    work() {
      return 'worked';
    }
  }
  class Inheriting extends Guarded {}
  for (const provider of [
    Guarded,
    Inheriting,
    { provide: 'TOOLS', useClass: Guarded },
    { provide: Guarded, useFactory: () => new Guarded() },
    { provide: Guarded, useFactory: () => new Guarded(), scope: Scope.REQUEST },
    { provide: Guarded, useValue: new Guarded() },
  ]) {
    const { tools } = await boot({ providers: [provider] });
    expect((await tools.execute('work')).error).toMatchObject({ name: 'ToolRefused' });
  }
  @Role('admin')
  @Wrapped
  class Marked {
    @Tool('Work')
    work(@Age() age: number, year: number) {
      return `${age} ${year}`;
    }
  }
  const { tools } = await boot({ providers: [Marked, { provide: APP_GUARD, useClass: RoleGuard }] });
  expect(Object.keys(tools.get('work')?.parameters.properties ?? {})).toEqual(['year']);
  expect((await tools.execute('work', { year: 1 })).error).toMatchObject({ name: 'ToolRefused' });
  const admin = { data: { role: 'admin' } };
  expect((await tools.executeWithContext('work', { year: 1 }, admin)).forLLM).toBe('36 1');
});

test('an exception filter on a class in a proxy turns errors of its tools into results', async () => {
  @UseFilters({ catch: (exception: Error) => `filtered: ${exception.message}` })
  @Wrapped
  class Failing {
    @Tool('Work')
    work() {
      throw new Error('no shoes');
    }
  }
  // The factory first: since NestJS 12, Nest itself remembers a class that it has instantiated.
  for (const provider of [{ provide: Failing, useFactory: () => new Failing() }, Failing]) {
    const { tools } = await boot({ providers: [provider] });
    expect(await tools.execute('work')).toMatchObject({ isError: true, forLLM: 'filtered: no shoes' });
  }
});

test('a method that only overrides a tool inherits its guards; its own decorators replace them', async () => {
  class Base {
    @Tool('Plain')
    @UseGuards(Never)
    plain() {
      return 'base';
    }

    @Tool('Replaced')
    @UseGuards(Never)
    replaced() {
      return 'base';
    }

    @Tool('Redeclared')
    @UseGuards(Never)
    redeclared() {
      return 'base';
    }

    @Tool('Tightened')
    tightened() {
      return 'base';
    }
  }
  class Middle extends Base {
    override plain() {
      return 'middle';
    }
  }
  class Sub extends Middle {
    override plain() {
      return 'sub';
    }

    @UseGuards({ canActivate: () => true })
    override replaced() {
      return 'sub';
    }

    @Tool('Redeclared')
    override redeclared() {
      return 'sub';
    }

    @UseGuards(Never)
    override tightened() {
      return 'sub';
    }
  }
  const { tools } = await boot({ providers: [Sub] });
  expect((await tools.execute('plain')).error).toMatchObject({ name: 'ToolRefused' });
  expect((await tools.execute('replaced')).forLLM).toBe('sub');
  expect((await tools.execute('redeclared')).forLLM).toBe('sub');
  expect((await tools.execute('tightened')).error).toMatchObject({ name: 'ToolRefused' });
});

test('pipe classes on a parameter run for every kind of provider, and are created per request', async () => {
  class AddOne implements PipeTransform {
    transform(value: number): number {
      return value + 1;
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class AddUser implements PipeTransform {
    constructor(@Inject(REQUEST) private readonly request: { readonly user: string }) {}

    transform(value: number): string {
      return `${this.request.user} is ${value}`;
    }
  }
  class Tools {
    @Tool('Say')
    say(@Age(AddOne, AddUser) age: string) {
      return age;
    }
  }
  for (const provider of [
    Tools,
    { provide: 'TOOLS', useFactory: () => new Tools() },
    { provide: 'TOOLS', useValue: new Tools() },
  ]) {
    const { tools, toolwright } = await boot({ providers: [provider] });
    const said = await Promise.all(
      ['ada', 'bob'].map((user) => tools.executeWithContext('say', {}, toolwright.scopeOf({ user }))),
    );
    expect(said.map(({ forLLM }) => forLLM)).toEqual(['ada is 37', 'bob is 37']);
  }
});
