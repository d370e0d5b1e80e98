/*
 * What every scripted model reads from: so many replies with calls of `add`, then the answer. It notes when
 * each request came, so that the cost of any turn can be read off afterwards.
 */

/** The text of the last reply. */
export const ANSWER = 'That is all.';

/** One conversation of `turns` replies with `width` calls each. */
export class Script {
  /** When request n came, by `performance.now()`. */
  marks;
  #turns;
  #asked = 0;
  #sum = '';
  #sawLast = false;

  constructor(turns, width = 1) {
    this.#turns = Array.from({ length: turns }, (_, turn) => callsOf(turn, width));
    this.#sum = String(sumOf(turns - 1, width - 1));
    this.marks = new Float64Array(turns + 1);
  }

  get length() {
    return this.#turns.length;
  }

  /** The calls of the next reply; none in the last. `history` is what the model was sent. */
  next(history) {
    const turn = this.#asked;
    this.#asked += 1;
    this.marks[turn] = performance.now();
    if (turn < this.#turns.length) return this.#turns[turn];
    // No argument of any call contains the sum: a tool has run, and the model was told what it said.
    this.#sawLast = JSON.stringify(history.slice(-20)).includes(this.#sum);
    return [];
  }

  /** Whether the conversation went as it should; otherwise what is wrong. */
  faultOf(answer) {
    if (this.#asked !== this.#turns.length + 1) return `it made ${this.#asked} requests`;
    if (!this.#sawLast) return 'the last request lacks the result of the last call';
    return answer === ANSWER ? undefined : `it answered ${JSON.stringify(answer)}`;
  }
}

/* Never the same call twice: a loop guard would rightly stop that. */
function callsOf(turn, width) {
  return Array.from({ length: width }, (_, index) => ({
    id: `call_${turn}_${index}`,
    name: 'add',
    arguments: JSON.stringify({ a: 71_000_000, b: turn * 100 + index + 1 }),
  }));
}

function sumOf(turn, index) {
  return 71_000_000 + turn * 100 + index + 1;
}
