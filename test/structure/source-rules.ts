// All rules that parse the sources, in one file, so that `npm test` parses the sources only once.
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
