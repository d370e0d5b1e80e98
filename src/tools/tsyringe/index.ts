import 'reflect-metadata/lite';
import * as tsyringe from 'tsyringe';
import { provide } from '../../core/kernel/optional-package.cjs';

provide('tsyringe', tsyringe);

/**
 * tsyringe's global container, from which `discoverTools` takes instances by default. Importing this entry point
 * makes the framework use its copy of tsyringe.
 *
 * @example
 * ```ts
 * import { container } from 'toolwright/tsyringe';
 *
 * container.register('database', { useValue: openDatabase() });
 * ```
 */
export const container: tsyringe.DependencyContainer = tsyringe.container;
