import Glibc

/// The user's browser.
enum Browser {
    /// Opens a page. Returns false if there is no screen or no browser.
    static func open(_ address: String) -> Bool {
        let screens: [String] = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
        guard screens.contains(where: { getenv($0).map { $0.pointee != 0 } ?? false }) else { return false }
        // It may be a browser in this terminal.
        return ChildProgram.run(["xdg-open", address], input: STDIN_FILENO, output: STDOUT_FILENO) == 0
    }
}
