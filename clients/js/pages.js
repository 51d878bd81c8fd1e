export const finishSignIn = async () => null;
