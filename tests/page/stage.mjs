/** What every file of tests stands on: a model, a real server, a browser, and a fresh tab for each test. */

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";
import { launch, open } from "./browser.mjs";
import { startModel } from "./model.mjs";
import { startServer } from "./server.mjs";

/** Sets the stage for the tests of a file, and hands it to `take` before each; a tab that logged a fault fails its test. */
export function setStage(options, take) {
  const stage = {};
  before(async () => {
    stage.model = await startModel();
    stage.server = await startServer({ model: stage.model.url, ...options });
    stage.browser = await launch();
  });
  beforeEach(async () => {
    stage.model.release();
    stage.tab = await open(stage.browser, stage.server.url);
    take(stage);
  });
  afterEach(async () => {
    const { faults } = stage.tab;
    await stage.tab.context().close();
    assert.deepEqual(faults, []);
  });
  after(async () => {
    await stage.browser?.close();
    await stage.server?.stop();
    stage.model?.close();
  });
}
