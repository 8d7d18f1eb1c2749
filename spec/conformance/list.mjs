// Prints the suite's tests as JSON: id, kind, and the tests that each depends on. The suite is found through the
// first argument, its folder; the extra tests are those that its own command line adds.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const load = async file => (await import(pathToFileURL(join(process.argv[2], 'tests', file)))).default
const groups = [...await load('index.mjs'), await load('surrogate-control.mjs')]
const tests = groups.flatMap(group => group.tests).filter(test => test.browser_only !== true)
console.log(JSON.stringify(tests.map(test => ({
  id: test.id,
  kind: test.kind ?? 'required',
  depends_on: test.depends_on ?? []
}))))
