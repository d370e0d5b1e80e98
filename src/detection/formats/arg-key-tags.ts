import { readParameterText } from '../parameter-text.js';
import { tagName } from './tag-name.js';
import type { TextCallFormat } from './text-call-format.js';

/** GLM 4.5 and later: `<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. */
export const argKeyTags: TextCallFormat = {
  openers: ['<tool_call>'],
  read(cursor, { tools }) {
    const name = tagName(cursor);
    if (name === undefined || !tools.has(name)) return undefined;
    const entries: [string, unknown][] = [];
    for (;;) {
      cursor.space();
      if (cursor.take('</tool_call>')) return [{ name, arguments: Object.fromEntries(entries) }];
      if (!cursor.take('<arg_key>')) return undefined;
      const key = cursor.until('</arg_key>')?.trim();
      cursor.space();
      if (key === undefined || !cursor.take('<arg_value>')) return undefined;
      const value = cursor.until('</arg_value>');
      if (value === undefined) return undefined;
      entries.push([key, readParameterText(value, tools.parameter(name, key))]);
    }
  },
};
