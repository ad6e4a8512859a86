//! What a person sees on a terminal: drawn by an emulator from what the program wrote.

use std::num::NonZero;

use super::world::{World, reading_and_answering};

const ANSWER: &str = "Morocco **never** uses *DST* [1].\n\n- one\n- two\n";

async fn world() -> World {
    World::new(reading_and_answering(ANSWER)).await
}

/// What stands on the screen in the end.
fn screen(written: &str) -> vt100::Parser {
    let [rows, columns] = [40, 79].map(|size| NonZero::new(size).unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(written.as_bytes());
    screen
}

/// The words on a screen that are written in bold.
fn bold(screen: &vt100::Screen) -> String {
    let cells = (0..40).flat_map(|row| (0..79).filter_map(move |column| screen.cell(row, column)));
    cells.filter(|cell| cell.bold()).map(vt100::Cell::contents).collect()
}

/// S1.13: what passes stays on one line, what lasts above it; the answer is rendered Markdown.
#[tokio::test]
async fn a_run_moves_on_one_line_and_leaves_its_answer_rendered() {
    let run = world().await.run_on_a_terminal(&["run", "Does Morocco?"], "").await.code(0);
    let parser = screen(&run.stdout);
    let last = parser.screen();
    let seen = last.contents();
    assert!(seen.contains("Morocco never uses DST [1]."), "{seen}");
    assert!(seen.contains("• one") && !seen.contains("**"), "{seen}");
    assert!(seen.contains("source [1]") && seen.contains("done in "), "{seen}");
    assert_eq!(bold(last), "never");
    assert!(run.stdout.contains("calls files.read"), "nothing moved: {:?}", run.stdout);
    for passed in ["calls files.read", "review 1 of", "writing the answer", "starting mcp"] {
        assert!(!seen.contains(passed), "{passed} stayed:\n{seen}");
    }
}

/// S1.13
#[tokio::test]
async fn no_output_is_coloured_if_colour_is_disabled_and_a_pipe_gets_every_line() {
    let mut world = world().await;
    world.set("NO_COLOR", "1");
    let run = world.run_on_a_terminal(&["run", "Does Morocco?"], "").await.code(0);
    let parser = screen(&run.stdout);
    let last = parser.screen();
    assert!(last.contents().contains("Morocco **never** uses *DST* [1]."), "{}", last.contents());
    assert_eq!(bold(last), "");
    let piped = world.run(&["run", "Does Morocco?"]).await.code(0);
    piped.says("calls files.read").says("qa: writing the answer");
}
