/// A part of a program's help and manual that is about the whole program, such as its exit statuses or environment.
public struct Section: Hashable, Sendable {
    let title: String
    let text: String

    /// A section.
    ///
    /// - Parameters:
    ///   - title: Its heading, such as `Exit status`.
    ///   - text: Empty lines separate paragraphs, a line that begins with a space stays as it is.
    public init(_ title: String, _ text: String) {
        self.title = title
        self.text = text
    }
}
