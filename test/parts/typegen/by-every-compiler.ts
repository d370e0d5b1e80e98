// All tests that need every compiler, in one file, so that each compiler is loaded only once: `npm test` runs this file.
import './array-interfaces.test.js';
import './class-references.test.js';
import './every-compiler.test.js';
import './faults.test.js';
import './import-ending.test.js';
import './mapped-libraries.test.js';
import './opened-again.test.js';
import './result-forms.test.js';
import './tagged-values.test.js';
