/// A section of a program's help and manual about the whole program, such as its exit statuses or environment.
public struct Section: Hashable, Sendable {
    let title: String
    let text: String
    let isDetail: Bool

    /// Creates a section.
    ///
    /// - Parameters:
    ///   - title: The heading, such as `Exit status`.
    ///   - text: Empty lines separate paragraphs; a line that begins with a space stays as it is.
    ///   - isDetail: Whether only `help options` and the manual show it.
    public init(_ title: String, _ text: String, isDetail: Bool = false) {
        self.title = title
        self.text = text
        self.isDetail = isDetail
    }
}
