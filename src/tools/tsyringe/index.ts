import 'reflect-metadata/lite';
import * as tsyringe from 'tsyringe';
import { provide } from '../../core/kernel/optional-package.cjs';

provide('tsyringe', tsyringe);

/**
 * tsyringe's global container, from which `discoverTools` takes instances unless it is given another one. Importing
 * this door makes its copy of tsyringe the one that is used.
 *
 * @example
 * ```ts
 * import { container } from 'toolwright/tsyringe';
 *
 * container.register('database', { useValue: openDatabase() });
 * ```
 */
export const container: tsyringe.DependencyContainer = tsyringe.container;
