import ArgumentParser
@main struct Postern: AsyncParsableCommand { }
