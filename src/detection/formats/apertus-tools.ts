import { isRecord } from '../../kernel/is-record.js';
import type { TextCallFormat } from './text-call-format.js';

/** Apertus: `<|tools_prefix|>[{"name": {"key": "value"}}]<|tools_suffix|>`. */
export const apertusTools: TextCallFormat = {
  openers: ['<|tools_prefix|>'],
  read(cursor) {
    cursor.space();
    const json = cursor.json({ relaxed: false });
    if (json === undefined || !Array.isArray(json.value)) return undefined;
    const calls = json.value.flatMap((item) => {
      const [entry, ...others] = isRecord(item) ? Object.entries(item) : [];
      if (entry === undefined || others.length > 0 || !isRecord(entry[1])) return [];
      return [{ name: entry[0], arguments: entry[1] }];
    });
    if (calls.length > 0) cursor.closers(['<|tools_suffix|>']);
    return calls;
  },
};
