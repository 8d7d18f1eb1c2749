// A JSON schema for each kind of Kubernetes' own API, from the OpenAPI document that its source carries: what `kubeconform` reads.
//
//     node schemas.mjs SWAGGER.JSON FOLDER
//
// Strict: a field that the document does not know is a mistake.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [document, folder] = process.argv.slice(2);
const { definitions } = JSON.parse(readFileSync(document, "utf8"));
const groups = new Set(["", "apps", "policy", "networking.k8s.io"]);
const quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";

function strict(name, schema) {
    if (name === quantity) return { type: ["string", "number"] };
    if (schema.format === "int-or-string") return { type: ["string", "integer"] };
    const closed = schema.properties && !schema.additionalProperties ? { additionalProperties: false } : {};
    return { ...schema, ...closed };
}

function reachable(from, found = new Map()) {
    if (found.has(from)) return found;
    found.set(from, strict(from, definitions[from]));
    const references = JSON.stringify(definitions[from]).matchAll(/"#\/definitions\/([^"]+)"/g);
    for (const [, name] of references) reachable(name, found);
    return found;
}

mkdirSync(folder, { recursive: true });
let count = 0;
for (const [name, schema] of Object.entries(definitions)) {
    const kinds = schema["x-kubernetes-group-version-kind"] ?? [];
    if (kinds.length !== 1 || kinds[0].version !== "v1" || !groups.has(kinds[0].group)) continue;
    const { group, kind, version } = kinds[0];
    const file = [kind.toLowerCase(), ...(group ? [group.split(".")[0]] : []), version].join("-");
    const own = structuredClone(strict(name, schema));
    // Which kind and version it is, is said by the document and not by its schema.
    own.properties.kind = { type: "string", enum: [kind] };
    own.properties.apiVersion = { type: "string", enum: [group ? `${group}/${version}` : version] };
    own.required = [...new Set([...(own.required ?? []), "apiVersion", "kind"])];
    own.definitions = Object.fromEntries(reachable(name));
    writeFileSync(`${folder}/${file}.json`, JSON.stringify(own));
    count += 1;
}
console.log(`${count} kinds`);
