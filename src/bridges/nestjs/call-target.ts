import type { ArgumentMetadata, ExecutionContext } from '@nestjs/common';
import type { ContextId } from '@nestjs/core';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { Module } from '@nestjs/core/injector/module.js';
import type { ToolContext } from '../../contract/tool-context.js';

/** A value for the handler. Pipes see it where it has metadata; contexts and signals have none. */
export interface HandlerValue {
  readonly value: unknown;
  readonly metadata?: ArgumentMetadata;
  /** Pipes that stand on the parameter itself, as classes or instances. */
  readonly pipes?: readonly unknown[];
}

/** What the call of a tool comes down to in Nest's terms: a handler of a class that a module provides. */
export interface CallTarget {
  /**
   * An object of the class that declares the handler. Enhancers are looked up through it, because the real
   * instance may be a proxy, a stand-in of a test, or not made yet.
   */
  readonly declared: object;
  /** What `getHandler()` gives: the method as its class declares it, with the metadata of its decorators. */
  readonly handler: HandlerFunction;
  /** Pipes that stand on the handler's parameters, as classes or instances. */
  readonly parameterPipes: readonly unknown[];
  /** The provider or controller that serves the calls. */
  readonly wrapper: InstanceWrapper<object>;
  readonly module: Module;
  /** Lays checked arguments out as the handler takes them. */
  layOut(args: unknown, context: ToolContext, execution: ExecutionContext): readonly HandlerValue[];
  invoke(instance: object, values: readonly unknown[]): unknown;
}

/** A target and the injection context in which its call takes place. */
export interface TargetInContext {
  readonly target: CallTarget;
  readonly contextId: ContextId;
}

/** A method of a user's class. */
// biome-ignore lint/suspicious/noExplicitAny: a method of a user's class has any signature
export type HandlerFunction = (...args: any[]) => any;
