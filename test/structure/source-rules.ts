// The rules that parse all sources, as one file, so that the sources are parsed once: `npm test` runs this one.
import './architecture.test.js';
import './doc-examples.test.js';
import './optional-packages.test.js';
import './entry-points.test.js';
import './import-direction.test.js';
import './naming.test.js';
import './no-cycles.test.js';
import './plain-code.test.js';
import './public-api.test.js';
import './size.test.js';
