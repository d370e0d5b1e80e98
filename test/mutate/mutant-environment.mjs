// Skips the remaining tests of a file after the first failure, which already shows that the mutant was found.
import { TestEnvironment } from 'jest-environment-node';

export default class MutantEnvironment extends TestEnvironment {
  #hasFailure = false;

  handleTestEvent({ name, test }) {
    if (name === 'test_done' && test.errors.length > 0) this.#hasFailure = true;
    if (name === 'test_start' && this.#hasFailure) test.mode = 'skip';
  }
}
