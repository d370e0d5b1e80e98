import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { CallHandler, NestInterceptor } from '@nestjs/common';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/index.js';
import {
  catchError,
  concat,
  defer,
  EMPTY,
  from,
  isObservable,
  lastValueFrom,
  map,
  type Observable,
  of,
  retry,
  switchMap,
  take,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { intercepted, interceptorOf } from '../../../src/surfaces/nestjs/enhancers.js';
import { toolExecutionContext } from '../../../src/surfaces/nestjs/nest-internals.js';

type Trace = (said: unknown) => void;
type Around = (next: CallHandler, trace: Trace) => unknown;
type Method = (trace: Trace) => unknown;

const store = new AsyncLocalStorage<string>();

const traced =
  (name: string): Around =>
  (next, trace) => {
    trace(`${name} before`);
    return next.handle().pipe(tap({ complete: () => trace(`${name} after`) }));
  };

const returns =
  (value: unknown): Method =>
  async (trace) => {
    trace(`method in ${store.getStore()}`);
    return value;
  };

let failures = 0;
const failsTwice: Method = async () => {
  failures += 1;
  if (failures % 3 !== 0) throw new Error(`failure ${failures % 3}`);
  return 'third';
};

const CASES: readonly (readonly [name: string, around: readonly Around[], method: Method])[] = [
  ['one interceptor', [traced('a')], returns('value')],
  ['two, the first outermost', [traced('a'), traced('b')], returns('value')],
  ['a value that is mapped', [(next) => next.handle().pipe(map((value) => ({ value })))], returns(1)],
  ['an async interceptor', [async (next) => next.handle(), traced('b')], returns('value')],
  ['one that does not call the method', [() => of('cached'), traced('b')], returns('value')],
  ['one that gives nothing', [() => EMPTY], returns('value')],
  ['one that throws', [traced('a'), () => broken('thrown')], returns('value')],
  ['one that rejects', [traced('a'), async () => broken('rejected')], returns('value')],
  ['one whose stream fails', [traced('a'), () => throwError(() => new Error('failed'))], returns('value')],
  ['one that returns no stream', [traced('a'), () => undefined], returns('value')],
  ['one that returns a list', [traced('a'), () => [1, 2, 3]], returns('value')],
  ['a method that fails', [traced('a')], async () => broken('method')],
  ['a method that is tried again', [(next) => next.handle().pipe(retry(2)), traced('b')], failsTwice],
  ['an error that is mapped', [(next) => next.handle().pipe(catchError(() => of('saved')))], failsTwice],
  ['an observable of the method', [traced('a')], returns(from([1, 2, 3]))],
  [
    'an observable of which one value is taken',
    [(next) => next.handle().pipe(take(1))],
    returns(from([1, 2])),
  ],
  [
    'an observable that fails',
    [traced('a')],
    returns(
      concat(
        of(1),
        throwError(() => new Error('late')),
      ),
    ),
  ],
  [
    'an asynchronous context around the handler',
    [(next) => store.run('inner', () => next.handle())],
    returns(1),
  ],
  [
    'a handler that is subscribed to in another context',
    [
      (next) => {
        const values = store.run('asking', () => next.handle());
        return defer(() => store.run('subscribing', () => values));
      },
      traced('b'),
    ],
    returns(1),
  ],
  [
    'a handler that is used after something else',
    [(next) => from(wait(1)).pipe(switchMap(() => next.handle()))],
    returns('late'),
  ],
  [
    'what is done after subscribing comes before the method',
    [
      (next, trace) =>
        defer(() => {
          const values = new Promise((resolve, reject) =>
            next.handle().subscribe({ next: resolve, error: reject }),
          );
          trace('subscribed');
          return from(values);
        }),
    ],
    returns('value'),
  ],
  [
    'a method that is left',
    [(next) => next.handle().pipe(timeout({ first: 5, with: () => of('left') }))],
    () => new Promise(() => {}),
  ],
];

test.each(CASES)('interceptors around a method as Nest runs them: %s', async (_name, around, method) => {
  const ours = await traceOf(around, method, ({ interceptors, execution, call }) =>
    intercepted({ interceptors, execution, method: call }),
  );
  const theirs = await traceOf(around, method, ({ interceptors, call }) =>
    new InterceptorsConsumer().intercept(interceptors, [], new Handlers(), handler, call, 'tool'),
  );
  expect(ours).toEqual(theirs);
});

test('the innermost interceptor is known that something was thrown out of', async () => {
  const inner: NestInterceptor = { intercept: () => throwError(() => thrown) };
  const outer: NestInterceptor = { intercept: (_context, next) => next.handle() };
  const thrown = new TypeError('no response');
  const execution = toolExecutionContext([], Handlers, handler);
  const values = intercepted({ interceptors: [outer, inner], execution, method: async () => 1 });
  await expect(lastValueFrom(values)).rejects.toBe(thrown);
  expect(interceptorOf(thrown)).toBe(inner);
});

class Handlers {}

function handler(): void {}

function broken(text: string): never {
  throw new Error(text);
}

interface Run {
  readonly interceptors: NestInterceptor[];
  readonly execution: ReturnType<typeof toolExecutionContext>;
  readonly call: () => Promise<unknown>;
}

/** Everything that is said, and what comes out. */
async function traceOf(
  around: readonly Around[],
  method: Method,
  run: (run: Run) => unknown,
): Promise<unknown> {
  const said: unknown[] = [];
  const trace: Trace = (text) => said.push(text);
  const interceptors = around.map((intercept) => ({
    intercept: (_context: unknown, next: CallHandler) => intercept(next, trace) as Observable<unknown>,
  }));
  const execution = toolExecutionContext([], Handlers, handler);
  const call = async (): Promise<unknown> => method(trace);
  const outcome = await store.run('outer', async () => {
    try {
      const values = await run({ interceptors, execution, call });
      if (!isObservable(values)) throw new Error('no observable');
      return await lastValueFrom(values as Observable<unknown>, { defaultValue: 'nothing' });
    } catch (error) {
      return String(error);
    }
  });
  return { said, outcome };
}
