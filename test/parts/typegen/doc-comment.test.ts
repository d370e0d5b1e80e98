import { describe, expect, test } from '@jest/globals';
import { docCommentAt, docKeywords, parseDocComment } from '../../../src/dev/typegen/doc-comment.js';

describe('the text of a comment', () => {
  test('line breaks inside a paragraph are joined; paragraphs, lists and code are preserved', () => {
    const { summary } = parseDocComment(
      `*
     * One
     * two.
     *
     * - three
     *   four
     * - five
     *
     * \`\`\`ts
     * a();
     *   b();
     * \`\`\`
     `.slice(1),
    );
    expect(summary).toBe('One two.\n\n- three four\n- five\n\n```ts\na();\n  b();\n```');
  });

  test('remarks are included, links become their text, and inline tags are parsed', () => {
    const comment = parseDocComment(`
     * A {@link Order} and {@link Page | a page} {@minimum 1}
     * @remarks More.
     `);
    expect(comment.summary).toBe('A Order and a page\n\nMore.');
    expect(comment.tags).toEqual([{ name: 'minimum', text: '1' }]);
  });

  test('a mail address or a decorator in a sentence is not parsed as a tag', () => {
    expect(parseDocComment(' Write to a@b.org, or use @Tool for it. ').summary).toBe(
      'Write to a@b.org, or use @Tool for it.',
    );
  });
});

describe('@param', () => {
  test.each([
    ['@param id The id', 'id', 'The id'],
    ['@param id - The id', 'id', 'The id'],
    ['@param {string} id The id', 'id', 'The id'],
    ['@param {string} [id=1] The id', 'id', 'The id'],
    ['@param page.size How many', 'page.size', 'How many'],
    ['@param id', 'id', ''],
    ['@param $id_1 x', '$id_1', 'x'],
  ])('"%s" is parsed', (line, name, text) => {
    expect(parseDocComment(`\n * ${line}\n `).params.get(name)?.summary).toBe(text);
  });

  test('tags on the same line belong to the parameter, tags on their own line to the method', () => {
    const comment = parseDocComment(
      '\n * @param limit At most @minimum 1 @maximum 5\n * @deprecated Use other\n ',
    );
    expect(comment.params.get('limit')).toMatchObject({
      summary: 'At most',
      tags: [
        { name: 'minimum', text: '1' },
        { name: 'maximum', text: '5' },
      ],
    });
    expect(comment.tags).toEqual([{ name: 'deprecated', text: 'Use other' }]);
  });
});

describe('the comment at a declaration', () => {
  test('is the last doc comment before it, even with other comments in between', () => {
    const text = 'x;\n/** No. */\n/** Yes. */\n// line\n@Tool() run() {}';
    expect(docCommentAt(text, 2)?.summary).toBe('Yes.');
  });

  test('is undefined if there are only plain comments', () => {
    expect(docCommentAt('/* no */ // no\n/**/ run() {}', 0)).toBeUndefined();
  });

  test('does not include a comment before other code', () => {
    expect(docCommentAt('/** Of a. */ a: string; b: number', 23)).toBeUndefined();
  });
});

describe('tags as JSON Schema keywords', () => {
  test('bounds, patterns, formats, examples and defaults are read under their JSON Schema names', () => {
    const { keywords, fallback, problems } = docKeywords(
      parseDocComment(`
       * @minimum 0 @exclusiveMaximum 1e3
       * @pattern ^a\\d+$
       * @format email
       * @uniqueItems
       * @example "x"
       * @example plain
       * @default {"a": [1]}
       * @deprecated
       `),
    );
    expect(problems).toEqual([]);
    expect(keywords).toEqual({
      minimum: 0,
      exclusiveMaximum: 1000,
      pattern: '^a\\d+$',
      format: 'email',
      uniqueItems: true,
      deprecated: true,
      examples: ['x', 'plain'],
    });
    expect(fallback).toEqual({ text: '{"a": [1]}', value: { a: [1] } });
  });

  test.each(['@integer', '@asType integer', '@type {integer}', '@int'])(
    '%s makes a number an integer',
    (tag) => {
      expect(docKeywords(parseDocComment(` ${tag} `)).isInteger).toBe(true);
    },
  );

  test('a value that cannot be parsed is a problem and sets no keyword', () => {
    const { keywords, problems } = docKeywords(parseDocComment('\n * @minLength long\n * @pattern [\n '));
    expect(keywords).toEqual({});
    expect(problems).toEqual([
      { problem: 'has a @minLength that cannot be read: "long"', fix: '@minLength with a number' },
      { problem: 'has a @pattern that cannot be read: "["', fix: '@pattern with a regular expression' },
    ]);
  });
});
