export { generateBeforeTests as default } from './generate-before-tests.js';
