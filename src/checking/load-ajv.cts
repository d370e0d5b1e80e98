/** ajv for a draft: its schemas of JSON Schema itself. */
export function newAjv(
  draft: '7' | '2019-09' | '2020-12',
  options: import('ajv').Options,
): import('ajv').Ajv {
  if (draft === '7') {
    const { Ajv }: typeof import('ajv') = require('ajv');
    return new Ajv(options);
  }
  if (draft === '2019-09') {
    const { Ajv2019 }: typeof import('ajv/dist/2019.js') = require('ajv/dist/2019.js');
    return new Ajv2019(options);
  }
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = require('ajv/dist/2020.js');
  return new Ajv2020(options);
}

export function loadFormats(): typeof import('ajv-formats/dist/formats.js') {
  return require('ajv-formats/dist/formats.js');
}
