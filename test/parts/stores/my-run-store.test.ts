import { describe, test } from '@jest/globals';
import { runStoreConformance } from 'toolwright/testing';
import { MyRunStore } from './my-run-store.js';

const cases = runStoreConformance({
  name: 'MyRunStore',
  checkpoints: false,
  open() {
    let time = 1_700_000_000_000;
    return {
      store: new MyRunStore({ now: () => time }),
      advance(ms) {
        time += ms;
      },
    };
  },
});

describe('the example store in the documentation passes the suite for a RunStore without checkpoints', () => {
  for (const { title, run } of cases) test(title, run);
});
