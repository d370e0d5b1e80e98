// The environment of the test files: after the first test that fails, the rest of its file is of no interest.
import { TestEnvironment } from 'jest-environment-node';

export default class MutantEnvironment extends TestEnvironment {
  #isFound = false;

  handleTestEvent({ name, test }) {
    if (name === 'test_done' && test.errors.length > 0) this.#isFound = true;
    if (name === 'test_start' && this.#isFound) test.mode = 'skip';
  }
}
