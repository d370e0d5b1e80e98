/** The code generator and its draft 7. Loaded with the first schema: it takes 40 ms that others need not spend. */
export function loadAjv(): typeof import('ajv') {
  return require('ajv');
}

export function loadAjv2019(): typeof import('ajv/dist/2019.js') {
  return require('ajv/dist/2019.js');
}

export function loadAjv2020(): typeof import('ajv/dist/2020.js') {
  return require('ajv/dist/2020.js');
}

export function loadFormats(): typeof import('ajv-formats/dist/formats.js') {
  return require('ajv-formats/dist/formats.js');
}
