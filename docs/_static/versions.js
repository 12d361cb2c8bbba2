// Versions lie side by side (tools/site_versions.py): the switch leads to the same page of another one, or to its first page.
window.addEventListener("DOMContentLoaded", async () => {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const form = document.querySelector("form.versions");
  let names;
  try {
    names = await (await fetch(new URL("../versions.json", root))).json();
  } catch {
    return; // a build of one version alone, or one opened from a disk
  }
  const own = root.pathname.split("/").at(-2);
  const select = form.querySelector("select");
  for (const name of names) select.add(new Option(name, name, name === own, name === own));
  select.addEventListener("change", async () => {
    const other = new URL(`../${select.value}/`, root);
    const same = new URL(location.href.slice(root.href.length), other);
    const found = await fetch(same, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    location.href = found ? same : other;
  });
  form.hidden = false;
});
