import { isBundled, provide } from '../../core/kernel/optional-package.cjs';
import { TRANSFORM_STORES } from '../validators/dto-rules.js';
import { loadClassValidator, loadTransformStores } from './load-dto-packages.cjs';

// Without a bundler, the copies that the application loaded are found.
if (isBundled()) {
  provide('class-validator', loadClassValidator());
  provide(TRANSFORM_STORES, loadTransformStores());
}
